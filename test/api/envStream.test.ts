import { connect } from 'node:net'
import * as assert from 'uvu/assert'
import { newId } from '../../src/ids.ts'
import { call, deploy, ended, handle, handled, publish, type Run, runsOf } from '../support/build.ts'
import { openApi } from '../support/http.ts'
import { addEnvironment, EVERYTHING, startServer } from '../support/server.ts'
import { PATIENCE } from '../support/patience.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'
import { JOBS } from './jobs.ts'
import { follow, upToMark, publishAndFollow, type Sent } from './sse.ts'

const dataDir = tempDir()
const [otherKey = ''] = await addEnvironment(dataDir, 'other', EVERYTHING)
let server = await startServer({ dataDir })
const { key } = server.api
const api = () => openApi(server.url, key)
await deploy(api(), 'work', { 'jobs.js': JOBS })

const subscribe = (query = '', lastId?: string) =>
  follow(api(), `/env/subscribe${query}`, lastId === undefined ? {} : { lastId })

const startOf = ({ fn, project_id, project_name, run_type, attempt, start_time }: Run) => ({
  fn,
  project_id,
  project_name,
  run_type,
  attempt,
  start_time,
})
const endOf = (run: Run) => ({ ...startOf(run), stop_time: run.stop_time })

const about = (events: readonly Sent[], stream_id: string) =>
  events.filter(({ data }) => data['stream_id'] === stream_id)

const env = suite('subscribing to the environment', { timeoutMs: 60_000 })

env('reports all kinds of activity in their documented form', async () => {
  const follower = await subscribe()
  const succeeded = await handle(api(), 'seen')
  const failed = await handle(api(), 'fails')
  const { event_id } = await publish(api(), 'svc:call', { fn: 'jobs/wait', args: [60_000] })
  const [{ run_id, stream_id }] = (await until(async () => {
    const runs = await runsOf(api(), event_id)
    return runs.length > 0 ? runs : undefined
  })) as [Run]
  await publish(api(), 'svc:cancel', { run_id })
  await ended(api(), run_id)
  const events = await upToMark(api(), follower)
  follower.close()

  const sent = about(events, succeeded.stream_id).map(({ event, data }) => [event, data])
  const ids = { event_id: succeeded.event_id, stream_id: succeeded.stream_id }
  const run = { run_id: succeeded.run_id, stream_id: succeeded.stream_id }
  assert.equal(sent, [
    ['stream:created', { stream_id: succeeded.stream_id }],
    ['event:created', { ...ids, event_type: 'seen' }],
    ['event:handled', { ...ids, run_ids: [succeeded.run_id] }],
    ['run:start', { ...run, ...startOf(succeeded) }],
    ['run:stop', { ...run, ...endOf(succeeded) }],
  ])
  const dataOf = (name: string, stream: string) =>
    about(events, stream).find(({ event }) => event === name)?.data
  assert.equal(dataOf('run:fail', failed.stream_id), {
    run_id: failed.run_id,
    stream_id: failed.stream_id,
    ...endOf(failed),
    retry_at: null,
    error: failed.error,
  })
  assert.equal(dataOf('run:cancel', stream_id), {
    run_id,
    stream_id,
    ...endOf(await api().get<Run>(`/runs/${run_id}`)),
  })
})

env('reports the attempts of a function, and when the next one is due', async () => {
  const follower = await subscribe()
  const { stream_id } = await handle(api(), 'hopeless')
  const runs = await until(async () => {
    const { data } = await api().page<Run>(`/runs?stream=${stream_id}`)
    return data.some(({ attempt, status }) => attempt === 3 && status === 'failed') ? data : undefined
  })
  const failures = about(await upToMark(api(), follower), stream_id).filter(
    ({ event }) => event === 'run:fail',
  )
  follower.close()
  assert.equal(
    failures.map(({ data }) => [data['attempt'], data['run_id']]),
    [1, 2, 3].map((attempt) => [attempt, runs.find((run) => run.attempt === attempt)?.run_id]),
  )
  const due = failures.map(({ data }) => data['retry_at'])
  assert.match(String(due[0]), /^\d{4}-.*Z$/)
  assert.match(String(due[1]), /^\d{4}-.*Z$/)
  assert.is(due[2], null)
})

env('names the function of a run whose start a client does not read', async () => {
  const { run_id, stream_id } = await handle(api(), 'seen')
  const all = await subscribe('?from=start')
  const past = await upToMark(api(), all)
  all.close()
  const start = past.find(({ event, data }) => event === 'run:start' && data['run_id'] === run_id)
  const later = await subscribe(`?from=${start?.id}`)
  const [stop] = about(await upToMark(api(), later), stream_id).filter(({ event }) => event === 'run:stop')
  later.close()
  assert.equal(stop?.data, { run_id, stream_id, ...endOf(await api().get<Run>(`/runs/${run_id}`)) })
})

env('starts with the next event', async () => {
  const before = await handle(api(), 'seen')
  const follower = await subscribe()
  const events = await upToMark(api(), follower)
  follower.close()
  assert.equal(about(events, before.stream_id), [])
})

env('reports nothing of another environment', async () => {
  const other = openApi(server.url, otherKey)
  const followers = [await subscribe(), await subscribe('?consumer=mine')] as const
  const { stream_id } = await publish(other, 'theirs')
  for (const follower of followers) {
    assert.equal(about(await upToMark(api(), follower), stream_id), [])
    follower.close()
  }
})

env('resumes after every id with each later event exactly once (I5)', async () => {
  const follower = await subscribe()
  await handle(api(), 'two')
  await call(api(), 'jobs/add', 1, 2)
  const events = await upToMark(api(), follower)
  follower.close()
  for (const [at, { id }] of events.entries()) {
    const again = await subscribe('', id)
    const later = await Promise.all(events.slice(at + 1).map(() => again.next()))
    again.close()
    assert.equal(later, events.slice(at + 1), `after event ${at}`)
  }
})

env('reports everything from the start', async () => {
  const follower = await subscribe('?from=start')
  const events = await upToMark(api(), follower)
  follower.close()
  const { pagination } = await api().page('/events?limit=1')
  assert.is(events.filter(({ event }) => event === 'event:created').length, pagination.total)
  assert.is(new Set(events.map(({ id }) => id)).size, events.length)
  assert.equal(
    events.map(({ id }) => id),
    events.map(({ id }) => id).toSorted(),
  )
})

env('sends every client the same events', async () => {
  const followers = await Promise.all([1, 2, 3].map(() => subscribe()))
  await handle(api(), 'two')
  const [first, ...rest] = await Promise.all(
    followers.map(async (follower) => {
      await follower.upTo('run:stop')
      return follower.seen[0]
    }),
  )
  for (const follower of followers) follower.close()
  for (const other of rest) assert.equal(other, first)
})

env('loses and repeats nothing under load while the connection is interrupted (I5)', async () => {
  let follower = await subscribe()
  const published: string[] = []
  const publishing = (async () => {
    for (let n = 0; n < 150; n++) published.push((await publish(api(), 'pour')).event_id)
  })()
  const seen: Sent[] = []
  while (seen.filter(({ data }) => data['event_type'] === 'pour').length < 150) {
    for (let n = 0; n < 25; n++) seen.push(await follower.next())
    follower.close()
    follower = await subscribe('', seen.at(-1)?.id)
  }
  await publishing
  follower.close()
  const created = seen.filter(({ data }) => data['event_type'] === 'pour').map(({ data }) => data['event_id'])
  assert.equal(created, published)
})

env('refuses an invalid position', async () => {
  for (const from of [newId(), 'x'.repeat(65), 'über', '12 3', '123', '0000009999999999']) {
    const { status, message } = await api().refused('GET', `/env/subscribe?from=${encodeURIComponent(from)}`)
    assert.is(status, 400)
    assert.match(message, 'from: ')
  }
})

const letsGo = async (): Promise<void> => {
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
  const closed = new Promise((resolve) => socket.on('error', () => {}).on('close', resolve))
  socket.write(`GET /v1/env/subscribe HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`)
  await new Promise((resolve) => socket.once('data', resolve))
  socket.pause()
  const reader = await subscribe()
  let bytes = 0
  const failures = () => reader.seen.filter(({ event }) => event === 'run:fail').length
  const args = ['x'.repeat(8000)]
  // The kernel buffers about 10 MB for a client that does not read; a run:fail can have 24 KB.
  for (let n = 100; n <= 800; n += 100) {
    await Promise.all(
      Array.from({ length: 100 }, () => publish(api(), 'svc:call', { fn: 'jobs/throwsText', args })),
    )
    await until(() => failures() === n, { timeoutMs: 20_000 })
  }
  await upToMark(api(), reader)
  reader.close()
  socket.on('data', (chunk) => (bytes += chunk.length)).resume()
  await closed
  const sent = reader.seen.reduce((sum, { data }) => sum + JSON.stringify(data).length, 0)
  assert.ok(bytes < sent, `got ${bytes} of ${sent} bytes`)
}
// A read-model server that scans does not fold 800 runs in time. The disconnection is the same on every engine.
if (PATIENCE === 1) env('disconnects a client that does not read, and no other client', letsGo)

env.run()

const time = suite('a subscription that lasts')

time('ends after its timeout, and reports it', async () => {
  await server.stop()
  server = await startServer({ dataDir, env: { SVC_SSE_TIMEOUT_MS: '300' } })
  const { stream_id } = await publish(api(), 'nobody')
  const quiet = await follow(api(), `/streams/${stream_id}/subscribe`)
  const busy = await publishAndFollow(api(), 'svc:call', { fn: 'jobs/wait', args: [4000] })
  const whole = await subscribe()
  const [end] = (await quiet.rest()) as [Sent]
  assert.equal([end.event, end.data], ['stream:complete', { stream_id, reason: 'timeout', next: end.id }])
  assert.is((await busy.rest()).at(-1)?.data['reason'], 'timeout')
  await whole.rest()

  const last = busy.seen.at(-1) as Sent
  const path = `/streams/${String(last.data['stream_id'])}/subscribe`
  const events = [...busy.seen]
  for (let { id } = last, reason: unknown = ''; reason !== 'completed';) {
    events.push(...(await (await follow(api(), path, { lastId: id })).rest()))
    id = events.at(-1)?.id ?? ''
    reason = events.at(-1)?.data['reason']
  }
  const names = events.map(({ event }) => event).filter((event) => event !== 'stream:complete')
  assert.equal(names, ['event:published', 'run:start', 'run:stop'])
})

time(
  'of the environment ends with a heartbeat, so that its client does not take the end for a failure',
  async () => {
    for (const path of ['/env/subscribe', '/env/subscribe?consumer=quiet'])
      assert.match((await api().send('GET', path)).text, /\n:hb\n\n$/)
  },
)

/** The text of a reply that its time ends, as `EventSource` reads it. Its last id is that of the next request. */
const textAfter = async (path: string, lastId = ''): Promise<{ text: string; lastId: string }> => {
  const headers = lastId === '' ? {} : { 'Last-Event-ID': lastId }
  const { text } = await api().send('GET', path, { headers })
  const ids = [...text.matchAll(/^id: (.*)$/gm)].map(([, id = '']) => id)
  return { text, lastId: ids.at(-1) ?? lastId }
}

time(
  'of a quiet environment has a position, so that a browser misses nothing between two replies',
  async () => {
    const { text, lastId } = await textAfter('/env/subscribe')
    assert.match(text, /\nid: \S+\n:hb\n\n$/)
    const { event_id } = await publish(api(), 'nobody')
    assert.match((await textAfter('/env/subscribe', lastId)).text, event_id)
  },
)

time('of a quiet stream is not complete for a browser that waits at its end', async () => {
  const { stream_id } = await handle(api(), 'seen')
  const path = `/streams/${stream_id}/subscribe`
  await until(async () => (await textAfter(`${path}?from=start`)).text.includes('"completed"'))
  const first = await textAfter(path)
  const second = await textAfter(path, first.lastId)
  for (const { text } of [first, second]) assert.match(text, '"reason":"timeout"')
  const { event_id } = await publish(api(), 'seen', null, { stream_id })
  await handled(api(), event_id)
  const third = await textAfter(path, second.lastId)
  for (const event of ['run:start', 'run:stop', 'stream:complete'])
    assert.match(third.text, `event: ${event}`)
})

time('ends when the service stops', async () => {
  const { stream_id } = await publish(api(), 'nobody')
  const followers = [
    await follow(api(), `/streams/${stream_id}/subscribe`),
    await subscribe(),
    await subscribe('?consumer=c'),
  ]
  await server.stop()
  await until(() => followers.every(({ over }) => over))
})

time.run()
