import * as assert from 'uvu/assert'
import { isId, newId } from '../../src/ids.ts'
import { call, deploy, handle, publish, type Run, runsOf } from '../support/build.ts'
import { startWithOther } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { follow, publishAndFollow, type Sent } from './sse.ts'

const FUNCTIONS = `
import { setTimeout } from 'node:timers/promises'
import { currentRun, emit, fn, run, send } from 'svc'

export const talks = fn({ 'on-event': 'talk' }, async ({ data }) => {
  for (const word of data.words) await emit('word', word)
  await send('talked', null)
  return data.words.length
})
export const afterwards = fn({ 'on-event': 'talked' }, () => 'heard')
export const fails = fn({ 'on-event': 'fail' }, () => { throw new Error('no') })
export const retries = fn({ 'on-event': 'again', retry: { attempts: 1, delay: 20 } }, () => {
  if (currentRun().attempt === 1) throw new Error('not yet')
})
export const child = () => run('chat/quick')
export const quick = () => 'quick'
export const waits = fn({ 'on-event': 'wait' }, ({ data }) => setTimeout(data, 'waited', { signal: currentRun().signal }))
export const large = fn({ 'on-event': 'large' }, async () => { const text = 'é'.repeat(50_000); await emit('text', text); return text })
`

const server = await startWithOther()
const { api, other } = server
await deploy(api, 'chat', { 'chat.js': FUNCTIONS })

const names = (events: readonly Sent[]) => events.map(({ event }) => event)
const runIn = ({ data }: Sent) => data['run'] as Run

const publishing = suite('subscribe-with-event')

publishing('tells of the event first, then of everything it leads to, then ends', async () => {
  const events = await (await publishAndFollow(api, 'talk', { words: ['a', 'b'] })).rest()
  const [first, ...later] = events as [Sent, ...Sent[]]
  const { event_id, stream_id, ...published } = first.data
  assert.equal([first.event, published], ['event:published', { type: 'event:published', event_type: 'talk' }])
  assert.equal(names(later).filter((name) => name === 'stream:data').length, 2)
  assert.equal(names(later).filter((name) => name === 'run:start').length, 2)
  assert.equal(names(later).filter((name) => name === 'run:stop').length, 2)
  assert.is(names(later).at(-1), 'stream:complete')
  assert.ok(isId(String(event_id)) && isId(String(stream_id)))
  assert.is((await api.get<{ stream_id: string }>(`/events/${String(event_id)}`)).stream_id, stream_id)
})

publishing('gives each event the shape of SPEC.md', async () => {
  const events = await (await publishAndFollow(api, 'talk', { words: ['a'] })).rest()
  const event_id = String(events[0]?.data['event_id'])
  const start = events.find(({ event }) => event === 'run:start') as Sent
  const data = events.find(({ event }) => event === 'stream:data') as Sent
  const stop = events.find((sent) => sent.event === 'run:stop' && runIn(sent).event_id === event_id) as Sent
  const complete = events.at(-1) as Sent
  const [run] = (await runsOf(api, event_id)) as [Run]

  assert.equal(stop.data, { type: 'run:stop', run })
  assert.equal(start.data, { type: 'run:start', run: { ...run, status: 'running', stop_time: null, result: null } })
  assert.equal(data.data, { type: 'stream:data', run_id: run.run_id, data_type: 'word', payload: 'a' })
  assert.equal(complete.data, { stream_id: run.stream_id, reason: 'completed', next: complete.id })
})

publishing('tells of failures and retries, and waits for them', async () => {
  const failing = await (await publishAndFollow(api, 'fail')).rest()
  assert.equal(names(failing), ['event:published', 'run:start', 'run:fail', 'stream:complete'])
  const failed = runIn(failing[2] as Sent)
  assert.equal([failed.status, failed.error?.message, failed.result], ['failed', 'no', { error: failed.error }])

  const again = await (await publishAndFollow(api, 'again')).rest()
  assert.equal(names(again), ['event:published', 'run:start', 'run:fail', 'run:start', 'run:stop', 'stream:complete'])
  assert.is(runIn(again[2] as Sent).status, 'pending_retry')
  assert.is(runIn(again[4] as Sent).origin_run_id, runIn(again[1] as Sent).run_id)
})

publishing('tells of a cancelled run', async () => {
  const follower = await publishAndFollow(api, 'wait', 60_000)
  const { run_id } = runIn((await follower.upTo('run:start')).at(-1) as Sent)
  await publish(api, 'svc:cancel', { run_id })
  const rest = await follower.rest()
  assert.equal(names(rest), ['run:cancel', 'stream:complete'])
  assert.equal([runIn(rest[0] as Sent).run_id, runIn(rest[0] as Sent).status], [run_id, 'cancelled'])
})

publishing('ends at once when nobody handles the event', async () => {
  assert.equal(names(await (await publishAndFollow(api, 'nobody')).rest()), ['event:published', 'stream:complete'])
})

publishing('continues a stream without telling of its past', async () => {
  const { stream_id } = await publish(api, 'talk', { words: ['past'] })
  await (await follow(api, `/streams/${stream_id}/subscribe?from=start`)).rest()
  const follower = await publishAndFollow(api, 'fail', null, { stream_id })
  const events = await follower.rest()
  assert.equal(names(events), ['event:published', 'run:start', 'run:fail', 'stream:complete'])
  assert.is(events[0]?.data['stream_id'], stream_id)
})

publishing('carries what is large', async () => {
  const events = await (await publishAndFollow(api, 'large')).rest()
  const text = 'é'.repeat(50_000)
  assert.is(events.find(({ event }) => event === 'stream:data')?.data['payload'], text)
  assert.is(runIn(events.find(({ event }) => event === 'run:stop') as Sent).result, text)
})

publishing('is refused like publishing, before a stream begins', async () => {
  const refused = (body: object) => api.refused('POST', '/streams/subscribe-with-event', body)
  assert.is((await refused({ event_data: 1 })).status, 400)
  assert.is((await refused({ type: 'svc:call', data: { fn: 'chat/none' } })).status, 400)
  assert.is((await refused({ type: 'a', stream_id: newId() })).status, 404)
})

publishing.run()

const subscribing = suite('subscribing to a stream')

subscribing('that is quiet waits for activity, then tells of it and ends', async () => {
  const { stream_id } = await handle(api, 'talk', { words: [] })
  await (await follow(api, `/streams/${stream_id}/subscribe?from=start`)).rest()
  const follower = await follow(api, `/streams/${stream_id}/subscribe`)
  await call(api, 'chat/quick') // something happens elsewhere meanwhile
  assert.equal([follower.over, follower.seen], [false, []])
  await publish(api, 'fail', null, { stream_id })
  assert.equal(names(await follower.rest()), ['run:start', 'run:fail', 'stream:complete'])
})

subscribing('from its start tells of all its past', async () => {
  const events = await (await publishAndFollow(api, 'talk', { words: ['a', 'b', 'c'] })).rest()
  const past = await (await follow(api, `/streams/${String(events[0]?.data['stream_id'])}/subscribe?from=start`)).rest()
  assert.equal(past, events.slice(1))
})

subscribing('resumes after every id with each later event exactly once (I5)', async () => {
  const events = await (await publishAndFollow(api, 'talk', { words: ['a', 'b', 'c'] })).rest()
  const path = `/streams/${String(events[0]?.data['stream_id'])}/subscribe`
  assert.is(new Set(events.slice(0, -1).map(({ id }) => id)).size, events.length - 1)
  for (const [at, { id }] of events.slice(0, -1).entries()) {
    assert.equal(await (await follow(api, path, { lastId: id })).rest(), events.slice(at + 1), `after event ${at}`)
    assert.equal(await (await follow(api, `${path}?from=${id}`)).rest(), events.slice(at + 1), `from event ${at}`)
  }
})

subscribing('loses and repeats nothing however often the connection is cut (I5)', async () => {
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

subscribing('may be narrowed to one project, by name or id', async () => {
  const { project_id } = await deploy(api, 'second', { 'second.js': `import { fn, emit } from 'svc'\nexport const talks = fn({ 'on-event': 'talk' }, () => emit('other', 1))` })
  const all = await (await publishAndFollow(api, 'talk', { words: ['a'] })).rest()
  const stream_id = String(all[0]?.data['stream_id'])
  for (const project of ['second', project_id]) {
    const events = await (await follow(api, `/streams/${stream_id}/subscribe?from=start&project=${project}`)).rest()
    assert.equal(names(events), ['run:start', 'stream:data', 'run:stop', 'stream:complete'])
    assert.is(runIn(events[0] as Sent).project_name, 'second')
  }
  const none = await (await follow(api, `/streams/${stream_id}/subscribe?from=start&project=none`)).rest()
  assert.equal(names(none), ['stream:complete'])
})

subscribing('gives two clients the same', async () => {
  const { stream_id } = await publish(api, 'wait', 50)
  const path = `/streams/${stream_id}/subscribe?from=start`
  const [one, two] = await Promise.all([follow(api, path), follow(api, path)])
  assert.equal(await one.rest(), await two.rest())
})

subscribing('to another environment’s stream is subscribing to nothing', async () => {
  const { stream_id } = await publish(api, 'nobody')
  for (const id of [stream_id, newId(), 'nothing']) {
    const { status, message } = await other.refused('GET', `/streams/${id}/subscribe`)
    assert.equal([status, message], [404, `No stream ${id}`])
  }
})

subscribing('refuses an id that is not of the stream', async () => {
  const { stream_id } = await publish(api, 'nobody')
  for (const from of ['999', 'middle', '-1', '1.5', newId()]) {
    const { status, message } = await api.refused('GET', `/streams/${stream_id}/subscribe?from=${from}`)
    assert.is(status, 400)
    assert.match(message, 'from: ')
  }
})

subscribing('ends a client’s wait when it leaves', async () => {
  const { stream_id } = await publish(api, 'nobody')
  const followers = await Promise.all(Array.from({ length: 20 }, () => follow(api, `/streams/${stream_id}/subscribe`)))
  for (const follower of followers) follower.close()
  await until(() => followers.every(({ over }) => over))
  assert.ok(isId((await publish(api, 'nobody', null, { stream_id })).event_id))
})

subscribing.after(() => server.stop())
subscribing.run()
