import * as assert from 'uvu/assert'
import { Outages } from '../../src/process/outages.ts'
import { clock } from '../../src/clock.ts'
import { AppError } from '../../src/errors.ts'
import { openLogger } from '../../src/logger.ts'
import { deploy, handled, publish } from '../support/build.ts'
import { startStandIn } from '../support/eventstoredb/index.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { together } from '../support/together.ts'
import { until } from '../support/until.ts'

const SVC_MASTER_KEY = Buffer.alloc(32, 7).toString('base64')

const outages = suite('an engine that stops answering', { timeoutMs: 60_000 })
const outagesTogether = together(outages)

/** Watches one engine until `work` ends. `away` is its error; null while it answers. */
const watching = async (
  work: (watched: {
    outages: Outages
    lines: string[]
    away: (error: Error | null) => void
  }) => Promise<void>,
): Promise<void> => {
  const lines: string[] = []
  const stopping = new AbortController()
  const watched = new Outages(openLogger((line) => void lines.push(line)))
  let failure: Error | null = null
  let asked = 0
  const ask = () => {
    asked++
    return failure ? Promise.reject(failure) : Promise.resolve()
  }
  const watch = watched.watch({ id: 'blobs', name: 'The engine', ask }, stopping.signal)
  await until(() => asked > 0)
  await work({ outages: watched, lines, away: (error) => (failure = error) })
  stopping.abort()
  await watch
}

outagesTogether('is logged once when the outage begins, and once when it ends with its duration', () =>
  watching(async ({ outages: watched, lines, away }) => {
    assert.equal(watched.current, [])
    for (const round of [1, 2]) {
      away(new AppError('unavailable', 'refused'))
      await until(() => watched.reason !== null)
      assert.is(lines.length, 2 * round - 1, lines.join(''))
      assert.match(
        lines.at(-1) ?? '',
        /warn The engine does not answer \{"since":"[^"]+","error":"refused"\}/,
      )
      away(null)
      await until(() => watched.current.length === 0)
      assert.is(watched.reason, null)
      assert.is(lines.length, 2 * round, lines.join(''))
      const [, lasted] =
        /info The engine answers again \{.*"lasted_ms":(\d+)\}/.exec(lines.at(-1) ?? '') ?? []
      assert.ok(Number(lasted) >= 5000, lines.join(''))
    }
  }),
)

outagesTogether('is logged with the data of its error', () =>
  watching(async ({ lines, away }) => {
    away(new AppError('unavailable', 'refused', { data: { renewal: 'no file' } }))
    await until(() => lines.length === 1)
    assert.match(lines[0] ?? '', /"error":"refused","renewal":"no file"\}/)
  }),
)

outagesTogether('makes the node not ready after five seconds, with its name and the time since when', () =>
  watching(async ({ outages: watched, away }) => {
    const began = clock.monotonic()
    away(new Error('broken'))
    await until(() => watched.current.length === 1)
    assert.is(watched.current[0]?.engine, 'The engine')
    const reason = await until(() => watched.reason)
    assert.ok(clock.monotonic() - began >= 5000)
    assert.is(reason, `The engine has not answered since ${watched.current[0]?.since}`)
  }),
)

outagesTogether('also counts as away if it accepts the question and never replies', () =>
  watching(async ({ outages: watched }) => {
    const stopping = new AbortController()
    void watched.watch(
      { id: 'blobs', name: 'The silent engine', ask: () => new Promise(() => {}) },
      stopping.signal,
    )
    await until(() => watched.current.length === 1)
    assert.is(watched.current[0]?.engine, 'The silent engine')
    stopping.abort()
  }),
)

outagesTogether('is reported by /readyz, while requests get 503 with Retry-After', async () => {
  const standIn = await startStandIn()
  const server = await startServer({ env: { SVC_EVENT_STORE: standIn.url, SVC_MASTER_KEY } })
  const ready = async () => {
    const reply = await fetch(`${server.url}/readyz`)
    return { status: reply.status, text: await reply.text() }
  }
  assert.is((await ready()).status, 200)
  for (const round of [1, 2]) {
    if (round === 1) await standIn.stop()
    else standIn.misbehave.silence()
    const reply = await until(async () => ((await ready()).status === 503 ? ready() : null), {
      timeoutMs: 20_000,
    })
    assert.match(reply.text, /The event store \(EventStoreDB\) has not answered since \d{4}-\d\d-\d\dT/)
    const { status, headers } = await server.api.send('POST', '/events', {
      body: { event_type: 'away', event_data: {} },
    })
    assert.is(status, 503)
    assert.ok(Number(headers.get('retry-after')) > 0)
    if (round === 1) await standIn.restart()
    else standIn.misbehave.heal()
    await until(async () => (await ready()).status === 200, { timeoutMs: 20_000 })
    const count = (text: string) => server.output.filter((line) => line.includes(text)).length
    assert.is(count('The event store (EventStoreDB) does not answer {'), round, server.output.join(''))
    assert.is(count('The event store (EventStoreDB) answers again'), round, server.output.join(''))
  }
  await server.stop()
  await standIn.stop()
})

outagesTogether('does not fill the log with the runs that it delays', async () => {
  const standIn = await startStandIn()
  const server = await startServer({ env: { SVC_EVENT_STORE: standIn.url, SVC_MASTER_KEY } })
  const code = `import { fn } from 'svc'
export const onWork = fn({ 'on-event': 'work' }, () => new Promise((done) => setTimeout(done, 4000)))` // until after the stop
  await deploy(server.api, 'shop', { 'jobs.js': code })
  const events = await Promise.all(Array.from({ length: 30 }, () => publish(server.api, 'work')))
  await standIn.stop()
  await until(() => server.output.some((line) => line.includes('The end of a run could not be stored')))
  await until(async () => (await fetch(`${server.url}/readyz`)).status === 503, { timeoutMs: 20_000 })
  await standIn.restart()
  for (const { event_id } of events) assert.is((await handled(server.api, event_id))[0]?.status, 'succeeded')
  const count = (text: string) => server.output.filter((line) => line.includes(text)).length
  assert.is(count('The end of a run could not be stored'), 1, server.output.join(''))
  assert.ok(count('An event could not be claimed') <= 1, server.output.join(''))
  await server.stop()
  await standIn.stop()
})

outages.run()

/** It moves the clock of this process, so no other test may run meanwhile. */
const long = suite('an outage of a minute')

long('cuts the node off, and its end is settled after 15 seconds', () =>
  watching(async ({ outages: watched, away }) => {
    const { monotonic } = clock
    let shiftMs = 0
    clock.monotonic = () => monotonic() + shiftMs
    const now = () => [watched.isCutOff('blobs'), watched.isSettled('blobs')]
    assert.equal(now(), [false, true])
    away(new Error('broken'))
    await until(() => watched.current.length === 1)
    assert.equal(now(), [false, false])
    shiftMs += 60_000
    assert.equal(now(), [true, false])
    away(null)
    await until(() => watched.current.length === 0)
    assert.equal(now(), [false, false])
    shiftMs += 15_000
    assert.equal(now(), [false, true])
    away(new Error('broken'))
    await until(() => watched.current.length === 1)
    away(null)
    await until(() => watched.current.length === 0)
    assert.equal(now(), [false, true], 'a short outage cuts nobody off')
    clock.monotonic = monotonic
  }),
)

long.run()
