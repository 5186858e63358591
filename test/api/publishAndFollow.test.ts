import * as assert from 'uvu/assert'
import { isId, newId } from '../../src/ids.ts'
import { deploy, publish, type Run, runsOf } from '../support/build.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { follow, publishAndFollow, type Sent } from './sse.ts'
import { CHAT } from './chat.ts'

const server = await startServer()
const { api } = server
await deploy(api, 'chat', { 'chat.js': CHAT })

const names = (events: readonly Sent[]) => events.map(({ event }) => event)
const runIn = ({ data }: Sent) => data['run'] as Run

const publishing = suite('subscribe-with-event')

publishing('reports the event first, then everything it leads to, then ends', async () => {
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
  assert.equal(start.data, {
    type: 'run:start',
    run: { ...run, status: 'running', stop_time: null, result: null },
  })
  assert.equal(data.data, { type: 'stream:data', run_id: run.run_id, data_type: 'word', payload: 'a' })
  assert.equal(complete.data, { stream_id: run.stream_id, reason: 'completed', next: complete.id })
})

publishing('adds the time of emitted data for a reader that wants it', async () => {
  const events = await (await publishAndFollow(api, 'talk', { words: ['a'] })).rest()
  const stop = runIn(events.find(({ event }) => event === 'run:stop') as Sent)
  const followed = await follow(api, `/streams/${stop.stream_id}/subscribe?from=start&times=true`)
  const data = (await followed.rest()).find(({ event }) => event === 'stream:data') as Sent
  const { emitted_at, ...emitted } = data.data
  assert.equal(emitted, { type: 'stream:data', run_id: data.data['run_id'], data_type: 'word', payload: 'a' })
  const [run] = (await runsOf(api, String(events[0]?.data['event_id']))) as [Run]
  assert.ok(run.start_time <= String(emitted_at) && String(emitted_at) <= String(run.stop_time))
})

publishing('reports failures and retries, and waits for them', async () => {
  const failing = await (await publishAndFollow(api, 'fail')).rest()
  assert.equal(names(failing), ['event:published', 'run:start', 'run:fail', 'stream:complete'])
  const failed = runIn(failing[2] as Sent)
  assert.equal(
    [failed.status, failed.error?.message, failed.result],
    ['failed', 'no', { error: failed.error }],
  )

  const again = await (await publishAndFollow(api, 'again')).rest()
  assert.equal(names(again), [
    'event:published',
    'run:start',
    'run:fail',
    'run:start',
    'run:stop',
    'stream:complete',
  ])
  assert.is(runIn(again[2] as Sent).status, 'pending_retry')
  assert.is(runIn(again[4] as Sent).origin_run_id, runIn(again[1] as Sent).run_id)
})

publishing('reports a cancelled run', async () => {
  const follower = await publishAndFollow(api, 'wait', 60_000)
  const { run_id } = runIn((await follower.upTo('run:start')).at(-1) as Sent)
  await publish(api, 'svc:cancel', { run_id })
  const rest = await follower.rest()
  assert.equal(names(rest), ['run:cancel', 'stream:complete'])
  assert.equal([runIn(rest[0] as Sent).run_id, runIn(rest[0] as Sent).status], [run_id, 'cancelled'])
})

publishing('ends at once when no function handles the event', async () => {
  assert.equal(names(await (await publishAndFollow(api, 'nobody')).rest()), [
    'event:published',
    'stream:complete',
  ])
})

publishing('continues a stream without reporting its past', async () => {
  const { stream_id } = await publish(api, 'talk', { words: ['past'] })
  await (await follow(api, `/streams/${stream_id}/subscribe?from=start`)).rest()
  const follower = await publishAndFollow(api, 'fail', null, { stream_id })
  const events = await follower.rest()
  assert.equal(names(events), ['event:published', 'run:start', 'run:fail', 'stream:complete'])
  assert.is(events[0]?.data['stream_id'], stream_id)
})

publishing('carries large data', async () => {
  const events = await (await publishAndFollow(api, 'large')).rest()
  const text = 'é'.repeat(50_000)
  assert.is(events.find(({ event }) => event === 'stream:data')?.data['payload'], text)
  assert.is(runIn(events.find(({ event }) => event === 'run:stop') as Sent).result, text)
})

publishing('is refused like publishing, before a stream begins', async () => {
  const refused = (body: object) => api.refused('POST', '/streams/subscribe-with-event', body)
  assert.is((await refused({ event_data: 1 })).status, 400)
  assert.is((await refused({ type: 'svc:call', data: { fn: 'chat/none' } })).status, 400)
  assert.is((await refused({ type: 'a', data: null, stream_id: newId() })).status, 404)
})

publishing('requires data, which may be null', async () => {
  for (const body of [{ event_type: 'quiet' }, { type: 'quiet', stream_id: newId() }]) {
    const { status, code, message } = await api.refused('POST', '/streams/subscribe-with-event', body)
    assert.equal([status, code, message], [400, 'bad_request', 'event_data: is required; it may be null'])
  }
  for (const name of ['event_data', 'data']) {
    const body = { type: 'quiet', [name]: null }
    const follower = await follow(api, '/streams/subscribe-with-event', { method: 'POST', body })
    assert.is((await follower.next()).event, 'event:published')
    follower.close()
  }
})

publishing.after(() => server.stop())
publishing.run()
