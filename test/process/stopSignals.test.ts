import { EventEmitter } from 'node:events'
import * as assert from 'uvu/assert'
import { onStopSignals } from '../../src/process/stopSignals.ts'
import { suite } from '../support/suite.ts'

const signals = suite('signals that stop a process')

/** Sends signals at milliseconds, and returns what happened. */
const sent = (given: readonly (readonly [at: number, signal: NodeJS.Signals])[]): readonly string[] => {
  const happened: string[] = []
  const source = new EventEmitter()
  let now = 0
  onStopSignals({
    source,
    now: () => now,
    first: (signal) => happened.push(`${signal} stops`),
    again: (signal) => happened.push(`${signal} ends`),
  })
  for (const [at, signal] of given) {
    now = at
    source.emit(signal)
  }
  return happened
}

signals('stop it in order, and end it at once when they are repeated', () => {
  assert.equal(sent([[0, 'SIGINT']]), ['SIGINT stops'])
  assert.equal(
    sent([
      [10, 'SIGTERM'],
      [510, 'SIGINT'],
    ]),
    ['SIGTERM stops', 'SIGINT ends'],
  )
})

signals('that arrive within half a second of the first are the same one', () => {
  assert.equal(
    sent([
      [10, 'SIGINT'],
      [11, 'SIGINT'],
      [509, 'SIGHUP'],
    ]),
    ['SIGINT stops'],
  )
})

signals.run()
