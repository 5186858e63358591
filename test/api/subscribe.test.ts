import { connect } from 'node:net'
import * as assert from 'uvu/assert'
import { isId, newId } from '../../src/ids.ts'
import { call, deploy, handle, publish, type Run } from '../support/build.ts'
import { startWithOther } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { follow, publishAndFollow, type Sent } from './sse.ts'
import { CHAT } from './chat.ts'

const server = await startWithOther()
const { api, other } = server
await deploy(api, 'chat', { 'chat.js': CHAT })

const names = (events: readonly Sent[]) => events.map(({ event }) => event)
const runIn = ({ data }: Sent) => data['run'] as Run

const subscribing = suite('subscribing to a stream', { timeoutMs: 60_000 })

subscribing('to a quiet stream waits for activity, then reports it and ends', async () => {
  const { stream_id } = await handle(api, 'talk', { words: [] })
  await (await follow(api, `/streams/${stream_id}/subscribe?from=start`)).rest()
  const follower = await follow(api, `/streams/${stream_id}/subscribe`)
  await call(api, 'chat/quick') // something happens elsewhere meanwhile
  assert.equal([follower.over, follower.seen], [false, []])
  await publish(api, 'fail', null, { stream_id })
  assert.equal(names(await follower.rest()), ['run:start', 'run:fail', 'stream:complete'])
})

subscribing('from its start reports all past events', async () => {
  const events = await (await publishAndFollow(api, 'talk', { words: ['a', 'b', 'c'] })).rest()
  const past = await (
    await follow(api, `/streams/${String(events[0]?.data['stream_id'])}/subscribe?from=start`)
  ).rest()
  assert.equal(past, events.slice(1))
})

subscribing('resumes after every id with each later event exactly once (I5)', async () => {
  const events = await (await publishAndFollow(api, 'talk', { words: ['a', 'b', 'c'] })).rest()
  const path = `/streams/${String(events[0]?.data['stream_id'])}/subscribe`
  assert.is(new Set(events.slice(0, -1).map(({ id }) => id)).size, events.length - 1)
  for (const [at, { id }] of events.slice(0, -1).entries()) {
    assert.equal(
      await (await follow(api, path, { lastId: id })).rest(),
      events.slice(at + 1),
      `after event ${at}`,
    )
    assert.equal(
      await (await follow(api, `${path}?from=${id}`)).rest(),
      events.slice(at + 1),
      `from event ${at}`,
    )
  }
})

subscribing('loses and repeats nothing however often the connection is interrupted (I5)', async () => {
  const words = Array.from({ length: 30 }, (_, n) => n)
  let follower = await publishAndFollow(api, 'talk', { words })
  const seen = [await follower.next()]
  const path = `/streams/${String(seen[0]?.data['stream_id'])}/subscribe`
  while (seen.at(-1)?.event !== 'stream:complete') {
    follower.close()
    follower = await follow(api, path, { lastId: seen.at(-1)?.id ?? '' })
    seen.push(await follower.next())
  }
  const payloads = seen.filter(({ event }) => event === 'stream:data').map(({ data }) => data['payload'])
  assert.equal(payloads, words)
  assert.equal(seen.slice(1, -1), (await (await follow(api, `${path}?from=start`)).rest()).slice(0, -1))
})

subscribing('delivers a result of megabytes, live and from the past', async () => {
  const live = await publishAndFollow(api, 'megabytes')
  const events = [(await live.rest()).slice(1)]
  const { stream_id } = live.seen[0]?.data ?? {}
  events.push(await (await follow(api, `/streams/${String(stream_id)}/subscribe?from=start`)).rest())
  for (const [start, stop, complete] of events as [Sent, Sent, Sent][]) {
    assert.equal(names([start, stop, complete]), ['run:start', 'run:stop', 'stream:complete'])
    assert.is((runIn(stop).result as string).length, 5 << 20)
  }
})

subscribing('waits for a client that reads slowly, and loses nothing', async () => {
  const { stream_id } = await publish(api, 'flood')
  const path = `/streams/${stream_id}/subscribe?from=start`
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1').setEncoding('utf8')
  socket.write(`GET /v1${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${api.key}\r\n\r\n`)
  socket.pause()
  const fast = await (await follow(api, path)).rest() // 12 MB: more than the kernel takes for the other
  const slow: string[] = []
  for await (const chunk of socket as AsyncIterable<string>) slow.push(chunk)
  const text = slow.join('')
  const payloads = text.matchAll(/"payload":"(\d+) *"/g)
  assert.equal(
    [...payloads].map(([, n]) => Number(n)),
    Array.from({ length: 1500 }, (_, n) => n),
  )
  assert.match(text.slice(-1000), 'stream:complete')
  assert.is(fast.length, 1503)
})

subscribing('can be limited to one project, by name or id', async () => {
  const { project_id } = await deploy(api, 'second', {
    'second.js': `import { fn, emit } from 'svc'\nexport const talks = fn({ 'on-event': 'talk' }, () => emit('other', 1))`,
  })
  const all = await (await publishAndFollow(api, 'talk', { words: ['a'] })).rest()
  const stream_id = String(all[0]?.data['stream_id'])
  const of = async (project: string) =>
    (await follow(api, `/streams/${stream_id}/subscribe?from=start&project=${project}`)).rest()
  for (const [name, ...known] of [
    ['second', 'second', project_id],
    ['renamed', 'renamed', 'second', project_id], // its runs keep the name that it had
  ]) {
    await api.patch(`/projects/${project_id}`, { name })
    for (const project of known) {
      const events = await of(project)
      assert.equal(names(events), ['run:start', 'stream:data', 'run:stop', 'stream:complete'], project)
      assert.is(runIn(events[0] as Sent).project_name, 'second')
    }
  }
  await api.post('/projects', { name: 'second' })
  for (const project of ['none', 'second']) assert.equal(names(await of(project)), ['stream:complete'])
})

subscribing('delivers the same events to two clients', async () => {
  const { stream_id } = await publish(api, 'wait', 50)
  const path = `/streams/${stream_id}/subscribe?from=start`
  const [one, two] = await Promise.all([follow(api, path), follow(api, path)])
  assert.equal(await one.rest(), await two.rest())
})

subscribing('to a stream of another environment is not_found', async () => {
  const { stream_id } = await publish(api, 'nobody')
  for (const id of [stream_id, newId(), 'nothing']) {
    const { status, message } = await other.refused('GET', `/streams/${id}/subscribe`)
    assert.equal([status, message], [404, `No stream ${id}`])
  }
})

subscribing('refuses an id that the stream does not have', async () => {
  const { stream_id } = await publish(api, 'nobody')
  for (const from of ['999', 'middle', '-1', '1.5', newId()]) {
    const { status, message } = await api.refused('GET', `/streams/${stream_id}/subscribe?from=${from}`)
    assert.is(status, 400)
    assert.match(message, 'from: ')
  }
  for (const path of [`/streams/${stream_id}/subscribe`, '/env/subscribe'])
    for (const query of ['', '?from=start']) {
      const headers = { 'Last-Event-ID': 'abc' }
      const { status, text } = await api.send('GET', path + query, { headers })
      assert.is(status, 400)
      assert.match(text, '"Last-Event-ID: expected start, end or the id of an event')
    }
})

subscribing('ends a client’s wait when it leaves', async () => {
  const { stream_id } = await publish(api, 'nobody')
  const followers = await Promise.all(
    Array.from({ length: 20 }, () => follow(api, `/streams/${stream_id}/subscribe`)),
  )
  for (const follower of followers) follower.close()
  await until(() => followers.every(({ over }) => over))
  assert.ok(isId((await publish(api, 'nobody', null, { stream_id })).event_id))
})

subscribing.after(() => server.stop())
subscribing.run()
