import { once } from 'node:events'
import { connect } from 'node:net'
import * as assert from 'uvu/assert'
import { deploy, ended, type Event, publish, type Run, runsOf, type Webhook } from '../support/build.ts'
import { type ServerProcess, spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { follow } from './sse.ts'

const FUNCTIONS = `
import { setTimeout } from 'node:timers/promises'
import { currentRun, fn, send } from 'svc'
export const slow = fn({ webhook: { service: 'slow', path: '/hook' } }, async ({ body }) => { await send('begun', null); await setTimeout(body); return 'answered' })
export const hangsOnce = async () => { await send('begun', null); if (currentRun().attempt === 1) await new Promise(() => {}) }
export const work = fn({ 'on-event': 'work' }, async ({ data }) => { await send('begun', null); await setTimeout(data); return 'worked' })
`

const stopping = suite<{ server: ServerProcess; url: string }>('a service that is asked to stop', {
  timeoutMs: 60_000,
})

stopping.before.each(async (context) => {
  context.server = await spawnServer()
  const { api } = context.server
  await deploy(api, 'work', { 'jobs.js': FUNCTIONS })
  context.url = ((await api.page<Webhook>('/projects/work/webhooks')).data[0] as Webhook).url
})
stopping.after.each(({ server }) => server.stop())

/** Waits until a function has begun. A slow machine may not see it run, but it sees the event that it has sent. */
const hasBegun = ({ api }: ServerProcess) =>
  until(async () => (await api.page('/events?event_type=begun')).pagination.total > 0)

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  stopping(`by ${signal} exits with 0 and ends its streams`, async ({ server }) => {
    const { stream_id } = await publish(server.api, 'nobody')
    const paths = [`/streams/${stream_id}/subscribe`, '/env/subscribe', '/env/subscribe?consumer=one']
    const followers = await Promise.all(paths.map((path) => follow(server.api, path)))
    assert.is(await server.end(signal), 0)
    await until(() => followers.every(({ over }) => over))
  })
}

stopping('answers the webhook in progress, then waits no longer', async ({ server, url }) => {
  const reply = server.api.send('POST', url, { body: 1500 })
  await hasBegun(server)
  let code: unknown
  void server.end('SIGTERM').then((ended) => (code = ended))
  assert.equal((await reply).json, 'answered')
  await until(() => code !== undefined)
  assert.is(code, 0)
})

stopping(
  'answers callers whose runs take longer than the 5 seconds of other requests',
  async ({ server, url }) => {
    const slow = server.api.send('POST', url, { body: 8000 })
    const code = 'await send("begun", null); await new Promise((resolve) => setTimeout(resolve, 8000)); 7'
    const evaluated = server.api.send('POST', '/projects/work/eval', { body: { code } })
    await until(async () => (await server.api.page('/events?event_type=begun')).pagination.total === 2)
    const ended = server.end('SIGTERM')
    const [reply, value] = await Promise.all([slow, evaluated])
    assert.equal([reply.status, reply.json], [200, 'answered'])
    assert.equal([value.status, (value.json as { data: Run }).data.result], [201, 7])
    assert.is(await ended, 0)
  },
)

stopping(
  'closes other requests after 5 seconds, and waits no longer for a caller than for its run',
  async ({ server, url }) => {
    const { port } = new URL(server.url)
    const upload = connect(Number(port), '127.0.0.1')
    upload.write('POST /v1/events HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n')
    const closed = once(upload.resume(), 'close')
    const reply = server.api.send('POST', url, { body: 600_000 })
    await hasBegun(server)
    const ended = server.end('SIGTERM')
    assert.is((await reply).status, 503)
    await closed
    assert.is(await ended, 0)
  },
)

stopping('accepts no requests while it drains', async ({ server, url }) => {
  const reply = server.api.send('POST', url, { body: 1500 })
  await hasBegun(server)
  const code = server.end('SIGTERM')
  await until(() =>
    fetch(`${server.url}/readyz`).then(
      ({ status }) => status === 503,
      () => true,
    ),
  )
  await reply
  assert.is(await code, 0)
})

stopping('lets runs in progress end, and stores everything', async ({ server }) => {
  const event = await publish(server.api, 'work', 500)
  await hasBegun(server)
  assert.is(await server.end('SIGTERM'), 0)
  const again = await spawnServer({ dataDir: server.dataDir })
  const [run] = (await runsOf(again.api, event.event_id)) as [Run]
  assert.equal([(await ended(again.api, run.run_id)).status, run.result], ['succeeded', 'worked'])
  assert.equal(await again.api.get<Event>(`/events/${event.event_id}`), event)
  await again.stop()
})

for (const [what, path, body, status] of [
  ['call', '/functions/work/jobs%2FhangsOnce?wait=60', {}, 'succeeded'],
  [
    'evaluation',
    '/projects/work/eval',
    { code: 'await send("begun", null); await new Promise(() => {})' },
    'failed',
  ],
] as const)
  stopping(`lets a client send a ${what} that has not ended again, with its key`, async ({ server }) => {
    const sent = { body, headers: { 'Idempotency-Key': 'k' } }
    const reply = server.api.send('POST', path, sent)
    await hasBegun(server)
    const code = server.end('SIGTERM')
    const refused = await reply
    assert.equal([refused.status, refused.headers.get('retry-after')], [503, '1'], refused.text)
    assert.is(await code, 0)
    const again = await spawnServer({ dataDir: server.dataDir })
    const { data } = (await again.api.send('POST', path, sent)).json as { data: Run }
    assert.is(data.status, status)
    const runs = (await again.api.page<Run>('/runs')).data
    const firsts = runs.filter(({ attempt }) => attempt === 1).map(({ run_id }) => run_id)
    assert.equal(firsts, [data.run_id])
    await again.stop()
  })

stopping('leaves nothing behind that blocks the next start', async ({ server }) => {
  assert.is(await server.end('SIGTERM'), 0)
  for (let n = 0; n < 2; n++) {
    const again = await spawnServer({ dataDir: server.dataDir })
    assert.is((await again.api.page('/projects')).pagination.total, 1)
    assert.is(await again.end('SIGTERM'), 0)
  }
})

stopping('refuses a second service on its data', async ({ server }) => {
  try {
    await spawnServer({ dataDir: server.dataDir })
  } catch (error) {
    assert.match((error as Error).message, `in use by process ${server.process.pid}`)
    return
  }
  assert.unreachable('expected the second one to exit')
})

stopping.run()
