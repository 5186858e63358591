import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import * as assert from 'uvu/assert'
import { PathError } from '../../src/client/errors.ts'
import { createClient, ServiceError } from '../../src/client/index.ts'
import { newId } from '../../src/ids.ts'
import { suite } from '../support/suite.ts'

const { setTimeout: realTimeout } = globalThis

const streams = suite<{ pauses: number[] }>('following a stream whose replies end at once')

/** The longest pause between two attempts, milliseconds. */
const LONGEST_MS = 10_000
/** The longest time until a reply begins, milliseconds. */
const REPLY_MS = 90_000

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

const bodyOf = (text: string) =>
  new ReadableStream({
    start: (to) => {
      if (text !== '') to.enqueue(new TextEncoder().encode(text))
      to.close()
    },
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

/** `retry` is what the service writes before the first event, whether or not it fails to read that event. */
for (const [what, text] of [
  ['are empty', ''],
  ['have no event', 'retry: 2000\n'],
  ['break off in their first event', 'retry: 2000\nid: 4\nevent: run:stop\ndata: {'],
] as const)
  streams(
    `pauses for longer each time, and then gives up with a clear error, when they ${what}`,
    async (context) => {
      const seen = { requests: 0 }
      const stop = new AbortController()
      const reply = () => {
        if (seen.requests > 17) stop.abort(new Error('asked again'))
        return bodyOf(text)
      }
      const reading = clientOf(reply, seen).follow(newId(), { signal: stop.signal })
      const failure = await Array.fromAsync(reading).catch((error: unknown) => error)
      assert.instance(failure, ServiceError)
      assert.match((failure as ServiceError).message, 'got replies that end before an event or a heartbeat')
      assert.is(seen.requests, 17)
      assert.ok(context.pauses.some((ms) => ms >= 5000))
    },
  )

streams('continues for as long as heartbeats arrive', async () => {
  const seen = { requests: 0 }
  const stop = new AbortController()
  const reply = () => {
    if (seen.requests === 40) stop.abort(new Error('enough'))
    return 'retry: 2000\n:hb\n\n'
  }
  const failure = await Array.fromAsync(clientOf(reply, seen).follow(newId(), { signal: stop.signal })).catch(
    (error: unknown) => error,
  )
  assert.is((failure as Error).message, 'enough')
})

streams('rejects at once for an id that no path can contain', async ({ pauses }) => {
  const seen = { requests: 0 }
  const failure = await Array.fromAsync(clientOf(() => '', seen).follow('')).catch((error: unknown) => error)
  assert.instance(failure, PathError)
  assert.equal([seen.requests, pauses], [0, []])
})

streams('asks again when a server never begins its reply', async () => {
  let limits = 0
  let expire = () => {}
  globalThis.setTimeout = ((work: (...given: unknown[]) => void, ms: number, ...rest: unknown[]) => {
    if (ms !== REPLY_MS) return realTimeout(work, ms, ...rest) // `fetch` has time limits too
    limits++
    expire = work
    return realTimeout(() => {}, 0)
  }) as typeof setTimeout
  let requests = 0
  const stop = new AbortController()
  const server = createServer(() => {
    if (++requests === 3) stop.abort(new Error('enough'))
    else expire() // the time limit of the request that never gets a reply
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const reading = createClient({ url, token: 'token' }).follow(newId(), { signal: stop.signal })
    const failure = await Array.fromAsync(reading).catch((error: unknown) => error)
    assert.is((failure as Error).message, 'enough')
    assert.is(limits, 3)
  } finally {
    server.closeAllConnections()
    server.close()
  }
})

streams.run()
