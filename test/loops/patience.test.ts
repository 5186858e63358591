import * as assert from 'uvu/assert'
import { AppError } from '../../src/errors.ts'
import { openLogger } from '../../src/logger.ts'
import { openPatience } from '../../src/loops/patience.ts'
import { suite } from '../support/suite.ts'

const open = () => {
  const lines: string[] = []
  const reasons: (string | null)[] = []
  const given = new AbortController()
  const patiently = openPatience({
    logger: openLogger((line) => void lines.push(line)),
    signal: given.signal,
    waiting: (reason) => void reasons.push(reason),
  })
  return { patiently, lines, reasons, giveUp: () => given.abort() }
}

const rejection = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => assert.unreachable('Expected a rejection'),
    (error: unknown) => error,
  )

const patience = suite('a step of the start')

patience('is repeated while an engine is down, with one line in the log', async () => {
  const { patiently, lines, reasons } = open()
  let attempts = 0
  const value = await patiently(() =>
    ++attempts < 3 ? Promise.reject(new AppError('unavailable', 'It is down')) : Promise.resolve('done'),
  )
  assert.is(value, 'done')
  assert.equal(reasons, ['It is down', 'It is down', null])
  assert.is(lines.length, 1)
})
patience('that succeeds at once reports nothing', async () => {
  const { patiently, reasons } = open()
  await patiently(() => Promise.resolve())
  assert.equal(reasons, [])
})
patience('ends with any other failure', async () => {
  const failure = new AppError('bad_request', 'x')
  const { patiently } = open()
  assert.is(await rejection(patiently(() => Promise.reject(failure))), failure)
})
patience('is not repeated when the start is given up', async () => {
  const { patiently, giveUp } = open()
  let attempts = 0
  const error = await rejection(
    patiently(() => {
      attempts++
      giveUp()
      return Promise.reject(new AppError('unavailable', 'It is down'))
    }),
  )
  assert.match(String(error), /The service was stopped while it started/)
  assert.is(attempts, 1)
})
patience.run()
