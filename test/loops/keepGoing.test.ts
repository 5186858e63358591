import * as assert from 'uvu/assert'
import { clock } from '../../src/clock.ts'
import { AppError, PermanentError } from '../../src/errors.ts'
import { keepGoing } from '../../src/loops/keepGoing.ts'
import { suite } from '../support/suite.ts'

const none = { firstMs: 0, longestMs: 0 }

/** Runs a loop that fails in a given way each time, until it fails no more or is given up. `ranMs`: how long it ran before. */
const failing = async (failures: readonly (Error | undefined)[], ranMs = 0) => {
  const lines: { level: string; message: string; error: unknown }[] = []
  const level = (name: string) => (message: string, fields?: Record<string, unknown>) =>
    void lines.push({ level: name, message, error: fields?.['error'] })
  const logger = { info: level('info'), warn: level('warn'), error: level('error') }
  const stopping = new AbortController()
  const givenUp: string[] = []
  let runs = 0
  const { monotonic } = clock
  let now = monotonic()
  clock.monotonic = () => now
  const loop = () => {
    now += ranMs
    if (runs === failures.length) stopping.abort()
    const failure = failures[runs++]
    return failure === undefined ? Promise.resolve() : Promise.reject(failure)
  }
  await keepGoing('The test', loop, {
    signal: stopping.signal,
    logger,
    onGivenUp: (reason) => givenUp.push(reason),
    restarts: none,
  }).finally(() => Object.assign(clock, { monotonic }))
  return { runs, lines, givenUp }
}

const away = () => new AppError('unavailable', 'The event store does not answer')

const loop = suite('a loop in the background')
loop('is restarted while an engine is unavailable, and one line is logged', async () => {
  const { runs, lines, givenUp } = await failing([away(), away(), away(), away()])
  assert.is(runs, 5)
  assert.equal(lines, [
    {
      level: 'warn',
      message: 'The test was interrupted and is retried until it succeeds',
      error: 'The event store does not answer',
    },
  ])
  assert.equal(givenUp, [])
})

loop('logs one line while it waits in vain for the answers of an engine', async () => {
  const { lines } = await failing([away(), away(), away()], 4600)
  assert.is(lines.length, 1)
})

loop('logs a line for each outage', async () => {
  const { lines } = await failing([away(), away()], 11_000)
  assert.is(lines.length, 2)
})

loop('logs a defect with its stack, each time', async () => {
  const defect = new TypeError('x is not a function')
  const { lines, givenUp } = await failing([defect, defect])
  assert.equal(
    lines.map(({ level, error }) => ({ level, error })),
    [
      { level: 'error', error: defect.stack },
      { level: 'error', error: defect.stack },
    ],
  )
  assert.equal(givenUp, [])
})

loop('is stopped after seven restarts did not help against a defect, and the node reports it', async () => {
  const { runs, givenUp } = await failing(Array.from({ length: 100 }, () => new TypeError('broken')))
  assert.is(runs, 8)
  assert.equal(givenUp, ['The test failed 8 times in a row and was stopped: broken'])
})

loop('treats an error that no retry can resolve as a defect', async () => {
  const { runs } = await failing(Array.from({ length: 100 }, () => new AppError('bad_request', 'no')))
  assert.is(runs, 8)
})

loop('is stopped at once by a permanent error, whatever its code', async () => {
  for (const code of ['unavailable', 'internal_server_error'] as const) {
    const { runs, givenUp } = await failing([new PermanentError(code, 'The log is damaged')])
    assert.is(runs, 1, code)
    assert.equal(givenUp, ['The test was stopped: The log is damaged'])
  }
})

loop('is restarted when it returned, without a line', async () => {
  const { runs, lines } = await failing([undefined, undefined])
  assert.is(runs, 3)
  assert.equal(lines, [])
})
loop.run()
