import * as assert from 'uvu/assert'
import { createClient, ServiceError } from '../../src/client/index.ts'
import { newId } from '../../src/ids.ts'
import { suite } from '../support/suite.ts'

const { setTimeout: realTimeout } = globalThis

const streams = suite<{ pauses: number[] }>('following a stream whose replies end at once')

/** The longest pause between two attempts, milliseconds. */
const LONGEST_MS = 10_000

/** Pauses end at once, and are noted. Longer timers are time limits. */
streams.before.each((context) => {
  const pauses: number[] = []
  context.pauses = pauses
  globalThis.setTimeout = ((work: () => void, ms: number) => {
    if (ms > LONGEST_MS) return realTimeout(work, ms)
    pauses.push(ms)
    return realTimeout(work, 0)
  }) as typeof setTimeout
})
streams.after.each(() => {
  globalThis.setTimeout = realTimeout
})

const clientOf = (reply: () => ConstructorParameters<typeof Response>[0], seen: { requests: number }) =>
  createClient({
    url: 'http://127.0.0.1:1',
    token: 'token',
    fetch: async () => {
      seen.requests++
      return new Response(reply(), { headers: { 'content-type': 'text/event-stream' } })
    },
  })

streams('pauses for longer each time, and then gives up with a clear error', async ({ pauses }) => {
  const seen = { requests: 0 }
  const failure = await Array.fromAsync(
    clientOf(() => new ReadableStream({ start: (to) => to.close() }), seen).follow(newId()),
  ).catch((error: unknown) => error)
  assert.instance(failure, ServiceError)
  assert.match((failure as ServiceError).message, 'Expected a stream of events, got replies that end at once')
  assert.is(seen.requests, 17)
  assert.ok(pauses.some((ms) => ms >= 5000))
})

streams('continues for as long as bytes arrive, such as heartbeats', async () => {
  const seen = { requests: 0 }
  const stop = new AbortController()
  const reply = () => {
    if (seen.requests === 40) stop.abort(new Error('enough'))
    return ': heartbeat\n\n'
  }
  const failure = await Array.fromAsync(clientOf(reply, seen).follow(newId(), { signal: stop.signal })).catch(
    (error: unknown) => error,
  )
  assert.is((failure as Error).message, 'enough')
})

streams.run()
