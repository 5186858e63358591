import * as assert from 'uvu/assert'
import { createClient, ServiceError, type StreamEvent } from '../../src/client/index.ts'
import { newId } from '../../src/ids.ts'
import { deploy } from '../support/build.ts'
import { type FaultProxy, openFaultProxy } from '../support/faultProxy.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

const FILES = {
  'chat.ts': `
    import { emit, fn } from 'svc'
    export const talk = fn({ 'on-event': 'talk' }, async (event: any) => {
      for (const word of event.data) {
        await emit('word', word)
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    })
  `,
}

interface Context {
  server: TestServer
  proxy: FaultProxy
  client: ReturnType<typeof createClient>
}

const following = suite<Context>('following a stream over a bad connection', { timeoutMs: 60_000 })

following.before(async (context) => {
  context.server = await startServer({ env: { SVC_SSE_TIMEOUT_MS: '1500' } })
  const { hostname, port } = new URL(context.server.url)
  context.proxy = await openFaultProxy({ host: hostname, port: Number(port) })
  const url = context.proxy.url(context.server.url)
  context.client = createClient({ url, token: context.server.api.key })
  await deploy(context.server.api, 'chat', FILES)
})
following.after(async ({ server, proxy }) => {
  await proxy.close()
  await server.stop()
})

const wordsIn = (events: readonly { readonly event: string; readonly data: unknown }[]) =>
  events
    .filter(({ event }) => event === 'stream:data')
    .map(({ data }) => (data as { payload: unknown }).payload)

following(
  'loses and repeats nothing, however often the connection is reset (I5)',
  async ({ client, proxy }) => {
    const words = Array.from({ length: 60 }, (_, n) => n)
    const seen: { event: string; data: unknown }[] = []
    for await (const event of client.sendAndFollow('talk', words)) {
      seen.push(event)
      if (seen.length % 10 !== 0) continue
      proxy.reset()
      await proxy.heal()
    }
    assert.equal(wordsIn(seen), words)
    assert.equal(
      [seen[0]?.event, seen[1]?.event, seen.at(-1)?.event],
      ['event:published', 'run:start', 'run:stop'],
    )
  },
)

following('has the times of the data when they are asked for', async ({ client }) => {
  const timesOf = async (options: { times?: boolean }) =>
    (await Array.fromAsync(client.sendAndFollow('talk', ['a', 'b'], options)))
      .filter((event) => event.event === 'stream:data')
      .map(({ data: { emitted_at } }) => emitted_at && new Date(emitted_at).toISOString() === emitted_at)
  assert.equal(await timesOf({ times: true }), [true, true])
  assert.equal(await timesOf({}), [undefined, undefined])
})

following('continues after the time limit of the service', async ({ client }) => {
  const words = Array.from({ length: 120 }, (_, n) => n) // longer than SVC_SSE_TIMEOUT_MS
  const seen = await Array.fromAsync(client.sendAndFollow('talk', words))
  assert.equal(wordsIn(seen), words)
})

following(
  'at its end misses nothing that happens while the connection is lost',
  async ({ client, server, proxy }) => {
    const quiet = await client.send('quiet')
    const { stream_id } = quiet
    const stop = new AbortController()
    const seen: StreamEvent[] = []
    const opened: Response[] = []
    const watched = createClient({
      url: client.url,
      token: server.api.key,
      fetch: async (...request) => {
        const response = await fetch(...request)
        opened.push(response)
        return response
      },
    })
    const reading = (async () => {
      for await (const event of watched.follow(stream_id, { from: 'end', signal: stop.signal }))
        seen.push(event)
    })()
    await until(() => opened.length === 1)
    proxy.refuse()
    await createClient({ url: server.url, token: server.api.key }).send('talk', ['while away'], { stream_id })
    await proxy.heal()
    await reading
    assert.equal(wordsIn(seen), ['while away'])
    assert.ok(opened.length > 1)
  },
)

following(
  'sends an event once, although the reply to the first attempt is lost',
  async ({ client, server, proxy }) => {
    const event_type = `lost-${newId()}`
    let attempts = 0
    const losing = createClient({
      url: client.url,
      token: server.api.key,
      fetch: async (...request) => {
        const response = await fetch(...request)
        if (++attempts > 1) return response
        await response.body?.cancel()
        throw new TypeError('fetch failed')
      },
    })
    const { event_id } = await losing.send(event_type)
    await proxy.heal()
    assert.equal(
      (await client.events.list({ event_type })).data.map((event) => event.event_id),
      [event_id],
    )
  },
)

following('follows the environment across connections', async ({ client, proxy, server }) => {
  const stop = new AbortController()
  const seen: string[] = []
  const direct = createClient({ url: server.url, token: server.api.key })
  const reading = (async () => {
    for await (const { event, data } of client.followEnv({ from: 'end', signal: stop.signal }))
      if (event === 'event:created') seen.push(data.event_id)
  })().catch((error: unknown) => error)
  const sent: string[] = []
  await until(async () => {
    sent.push((await direct.send('ping')).event_id)
    return seen.length > 0
  })
  const first = sent.indexOf(seen[0] ?? '')
  for (let n = 0; n < 5; n++) {
    proxy.reset()
    sent.push((await direct.send('ping')).event_id)
    await proxy.heal()
    sent.push((await direct.send('ping')).event_id)
  }
  await until(() => seen.includes(sent.at(-1) ?? ''))
  stop.abort(new Error('enough'))
  assert.is(((await reading) as Error).message, 'enough')
  assert.equal(seen, sent.slice(first))
})

following('ends with the refusal of the service, which no repetition changes', async ({ client }) => {
  try {
    await Array.fromAsync(client.follow(newId()))
    assert.unreachable()
  } catch (error) {
    assert.instance(error, ServiceError)
    assert.is((error as ServiceError).status, 404)
  }
})

following('closes its connection when the reader leaves', async ({ client, server }) => {
  const { stream_id } = await client.send(
    'talk',
    Array.from({ length: 50 }, (_, n) => n),
  )
  let signal: AbortSignal | null | undefined
  const watched = createClient({
    url: server.url,
    token: server.api.key,
    fetch: (input, init) => {
      signal = init?.signal
      return fetch(input, init)
    },
  })
  for await (const { event } of watched.follow(stream_id)) if (event === 'stream:data') break
  assert.is(signal?.aborted, true)
})

following.run()
