import * as assert from 'uvu/assert'
import { AppError } from '../../src/errors.ts'
import { Alarms } from '../../src/sagas/alarms.ts'
import { runSaga } from '../../src/sagas/runSaga.ts'
import type { Reaction, Saga } from '../../src/sagas/saga.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

const NOW = 1_000_000
const clock = { now: () => NOW }

interface Given {
  readonly inputs?: readonly string[]
  readonly react: (input: string) => Reaction<null, string, string>['steps']
  readonly carryOut?: (command: string) => Promise<string | undefined>
  readonly afterFailure?: (command: string) => string | undefined
}

/** A saga under way whose inputs and commands are texts. */
const running = ({ inputs = ['begin'], react, carryOut, afterFailure }: Given) => {
  const stopping = new AbortController()
  const alarms = new Alarms()
  const taken: string[] = []
  const carriedOut: string[] = []
  const lines: { level: string; message: string; error: unknown }[] = []
  const level = (name: string) => (message: string, fields?: Record<string, unknown>) =>
    void lines.push({ level: name, message, error: fields?.['error'] })
  const later: string[] = []
  let wake = () => {}
  const saga: Saga<null, string, string> = {
    name: 'testing',
    initial: null,
    react(state, input) {
      taken.push(input)
      return { state, steps: react(input) }
    },
    async *inputs(signal) {
      signal.addEventListener('abort', () => wake(), { once: true })
      yield* inputs
      while (!signal.aborted) {
        yield* later.splice(0)
        if (!signal.aborted && later.length === 0) await new Promise<void>((resolve) => (wake = resolve))
      }
    },
    async carryOut(command) {
      carriedOut.push(command)
      return await carryOut?.(command)
    },
    ...(afterFailure && { afterFailure }),
  }
  const logger = { info: level('info'), warn: level('warn'), error: level('error') }
  const ended = runSaga(saga, { logger, clock, alarms }, stopping.signal)
  ended.catch(() => {})
  return {
    taken,
    carriedOut,
    lines,
    alarms,
    ended,
    send(input: string) {
      later.push(input)
      wake()
    },
    async stop() {
      stopping.abort()
      await ended.catch(() => {})
    },
  }
}

const turns = async () => {
  for (let i = 0; i < 20; i++) await new Promise(setImmediate)
}
const away = () => Promise.reject(new AppError('unavailable', 'The event store does not answer'))

const driver = suite('a saga')

driver('takes its inputs and the outcomes of commands in order', async () => {
  const saga = running({
    inputs: ['one', 'two'],
    react: (input) => (input === 'two' ? [{ do: 'carryOut', key: 'k', command: 'act' }] : []),
    carryOut: () => Promise.resolve('acted'),
  })
  await until(() => saga.taken.length === 3)
  assert.equal(saga.taken, ['one', 'two', 'acted'])
  await saga.stop()
})

driver('takes the input of an alarm when it rings, moved to its last instant', async () => {
  const saga = running({
    react: (input) =>
      input === 'begin'
        ? [
            { do: 'setAlarm', key: 'k', at: Date.now() + 3_600_000, input: 'late' },
            { do: 'setAlarm', key: 'k', at: Date.now() - 1, input: 'rung' },
            { do: 'setAlarm', key: 'other', at: Date.now() - 1, input: 'dropped' },
            { do: 'drop', key: 'other' },
          ]
        : [],
  })
  await until(() => saga.taken.length === 2)
  await turns()
  assert.equal(saga.taken, ['begin', 'rung'])
  await saga.stop()
})

driver('retries a command while an engine is unavailable, with one line for the outage', async () => {
  const times: number[] = []
  const saga = running({
    inputs: ['a', 'b'],
    react: (input) => (input === 'done' ? [] : [{ do: 'carryOut', key: input, command: input }]),
    carryOut: (command) =>
      times.push(performance.now()) < 5 ? away() : Promise.resolve(command === 'a' ? 'done' : undefined),
  })
  await until(() => saga.taken.includes('done'))
  assert.equal(saga.carriedOut.slice(0, 2), ['a', 'b'])
  const [first = NaN, , third = NaN] = times
  assert.ok(third - first >= 200, `without haste, got a pause of ${third - first} ms`)
  assert.equal(saga.lines, [
    {
      level: 'warn',
      message: 'The saga testing cannot carry out its commands and retries until it succeeds',
      error: 'The event store does not answer',
    },
  ])
  await saga.stop()
})

driver('logs any other failure of a command with its stack, and does not retry it', async () => {
  const defect = new TypeError('x is not a function')
  const saga = running({
    react: (input) =>
      input === 'begin'
        ? [{ do: 'carryOut', key: 'k', command: 'act' }]
        : [{ do: 'carryOut', key: 'k', command: 'next' }],
    carryOut: (command) => (command === 'act' ? Promise.reject(defect) : Promise.resolve(undefined)),
    afterFailure: (command) => `${command} failed`,
  })
  await until(() => saga.carriedOut.length === 2)
  await turns()
  assert.equal(saga.carriedOut, ['act', 'next'])
  assert.equal(saga.taken, ['begin', 'act failed'])
  assert.equal(saga.lines, [
    {
      level: 'error',
      message: 'The saga testing failed to carry out a command and skips it',
      error: defect.stack,
    },
  ])
  await saga.stop()
})

driver('ends, and can be started again, when what follows a failed command fails too', async () => {
  const defect = new Error('a defect')
  const saga = running({
    react: () => [{ do: 'carryOut', key: 'k', command: 'act' }],
    carryOut: () => Promise.reject(new Error('the command failed')),
    afterFailure: () => {
      throw defect
    },
  })
  const failure = await saga.ended.then(
    () => null,
    (error: unknown) => error,
  )
  assert.is(failure, defect)
})

driver('does not retry a dropped command, and ignores its outcome', async () => {
  const attempt = Promise.withResolvers<string>()
  const saga = running({
    react: (input) =>
      input === 'drop'
        ? [{ do: 'drop', key: 'k' }]
        : input === 'begin'
          ? [
              { do: 'carryOut', key: 'k', command: 'slow' },
              { do: 'carryOut', key: 'away', command: 'away' },
            ]
          : [],
    carryOut: (command) => (command === 'slow' ? attempt.promise : away()),
  })
  await until(() => saga.carriedOut.length === 2)
  saga.send('drop')
  await until(() => saga.taken.includes('drop'))
  attempt.resolve('too late')
  await turns()
  assert.equal(saga.taken, ['begin', 'drop'])
  await saga.stop()
})

driver('has one command of a key in progress at a time', async () => {
  const first = Promise.withResolvers<undefined>()
  const saga = running({
    inputs: ['1', '2'],
    react: (input) => [{ do: 'carryOut', key: 'k', command: input }],
    carryOut: () => first.promise,
  })
  await until(() => saga.taken.length === 2)
  assert.equal(saga.carriedOut, ['1'])
  first.resolve(undefined)
  await turns()
  saga.send('3')
  await until(() => saga.carriedOut.length === 2)
  assert.equal(saga.carriedOut, ['1', '3'])
  await saga.stop()
})

driver('rejects when its core fails at an alarm, and clears its alarms', async () => {
  const saga = running({
    react(input) {
      if (input === 'rung') throw new TypeError('a defect of the core')
      return [
        { do: 'setAlarm', key: 'now', at: Date.now() - 1, input: 'rung' },
        { do: 'setAlarm', key: 'later', at: Date.now() + 3_600_000, input: 'later' },
      ]
    },
  })
  const failure = await saga.ended.catch((error: Error) => error.message)
  assert.is(failure, 'a defect of the core')
  assert.is(saga.alarms.size, 0)
})

driver('sets no alarm and retries nothing once it is stopped', async () => {
  const outcome = Promise.withResolvers<string>()
  const saga = running({
    react: (input) =>
      input === 'begin'
        ? [{ do: 'carryOut', key: 'k', command: 'act' }]
        : [{ do: 'setAlarm', key: 'k', at: Date.now() + 3_600_000, input: 'x' }],
    carryOut: () => outcome.promise,
  })
  await until(() => saga.carriedOut.length === 1)
  await saga.stop()
  outcome.reject(new AppError('unavailable', 'closed'))
  await turns()
  assert.equal(saga.carriedOut, ['act'])
  assert.equal(saga.lines, [])
  assert.is(saga.alarms.size, 0)
})
driver.run()
