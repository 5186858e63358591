import * as assert from 'uvu/assert'
import { isId, newId } from '../../src/ids.ts'
import { deploy, type Event, handle, publish, type PublishedEvent } from '../support/build.ts'
import { startWithOther } from '../support/server.ts'
import { suite } from '../support/suite.ts'

const EVENT_FIELDS = [
  'created_at',
  'env_id',
  'event_data',
  'event_id',
  'event_time',
  'event_type',
  'stream_id',
]

const server = await startWithOther()
const { api, other } = server

const publishing = suite('publishing an event')

publishing('replies 201 with the event of SPEC.md', async () => {
  const { status, json } = await api.send('POST', '/events', {
    body: { event_type: 'a:b', event_data: { n: 1 } },
  })
  const { data } = json as { data: Event }
  assert.is(status, 201)
  assert.equal(Object.keys(data).sort(), [...EVENT_FIELDS, 'handlers'].sort())
  assert.equal([data.event_type, data.event_data], ['a:b', { n: 1 }])
  for (const id of [data.event_id, data.env_id, data.stream_id]) assert.ok(isId(id))
  for (const time of [data.event_time, data.created_at]) assert.is(new Date(time).toISOString(), time)
})

for (const [number, path] of [
  ['1e400', 'n'],
  ['[{"a": -1E+400}]', 'n.0.a'],
  ['9'.repeat(310), 'n'],
  [`${'9'.repeat(250)}e99`, 'n'],
] as const) {
  publishing(`refuses a number beyond a double: ${number.slice(0, 20)}`, async () => {
    const body = `{"event_type":"a:large","event_data":{"text":"1e400","n":${number}}}`
    const { status, json } = await api.send('POST', '/events', { body })
    assert.is(status, 400)
    const { message } = (json as { error: { message: string } }).error
    assert.ok(message.startsWith(`event_data.${path}: expected a number of at most 1.79`), message)
    assert.is((await api.page('/events?event_type=a%3Alarge')).pagination.total, 0)
  })
}

publishing('takes numbers and texts that only look too large, and a byte order mark', async () => {
  const data = `{"a":1e308,"b":1e-400,"c":"1e400","d":0e999,"e":"${'9'.repeat(310)}"}`
  const { status, json } = await api.send('POST', '/events', {
    body: `\uFEFF{"event_type":"a:b","event_data":${data}}`,
  })
  assert.is(status, 201)
  assert.equal((json as { data: Event }).data.event_data, JSON.parse(data))
})

publishing('refuses a body that is not UTF-8, and stores no other text in its place', async () => {
  const latin1 = Buffer.from('{"event_type":"a:latin","event_data":"caf\u00e9"}', 'latin1')
  const { status, json } = await api.send('POST', '/events', { body: latin1 })
  assert.is(status, 400)
  const { message } = (json as { error: { message: string } }).error
  assert.is(message, 'body: expected JSON in UTF-8')
  assert.is((await api.page('/events?event_type=a%3Alatin')).pagination.total, 0)
})

publishing(
  'returns the number of its handlers in all projects, also for a stream that continues',
  async () => {
    const count = async (body: object) => (await api.post<PublishedEvent>('/events', body)).handlers
    const { stream_id } = await publish(api, 'count:me')
    for (const more of [{}, { stream_id }])
      assert.is(await count({ event_type: 'count:me', event_data: 1, ...more }), 0)
    const source = (names: readonly string[]) =>
      names.map((name) => `export const ${name} = fn({ 'on-event': 'count:me' }, () => 1)`).join('\n')
    await deploy(api, 'counted', { 'c.js': `import { fn } from 'svc'\n${source(['a', 'b'])}` })
    await deploy(api, 'counted-too', { 'd.js': `import { fn } from 'svc'\n${source(['a'])}` })
    for (const more of [{}, { stream_id }])
      assert.is(await count({ event_type: 'count:me', event_data: 1, ...more }), 3)
    assert.is(await count({ event_type: 'count:ME', event_data: 1 }), 0)
    assert.is(await count({ event_type: 'svc:call', event_data: { fn: 'c/a' } }), undefined)
  },
)

publishing('accepts type and data as other names of the fields', async () => {
  const event = await api.post<Event>('/events', { type: 'a:b', data: [1] })
  assert.equal([event.event_type, event.event_data], ['a:b', [1]])
})

publishing('stores null when there is no data', async () => {
  assert.is((await api.post<Event>('/events', { type: 'a:b' })).event_data, null)
})

publishing('accepts event_data that is null, with either name of the type', async () => {
  assert.is((await api.post<Event>('/events', { type: 'a:b', event_data: null })).event_data, null)
})

publishing('continues the stream that it names', async () => {
  const { stream_id } = await publish(api, 'a:b')
  assert.is((await publish(api, 'a:c', null, { stream_id })).stream_id, stream_id)
})

publishing('refuses a missing stream and one of another environment in the same way', async () => {
  const theirs = await publish(other, 'a:b')
  for (const stream_id of [newId(), theirs.stream_id]) {
    const { status, code, message } = await api.refused('POST', '/events', { type: 'a:b', stream_id })
    assert.equal([status, code], [404, 'not_found'])
    assert.is(message, `No stream ${stream_id}`)
  }
})

const wrong: [name: string, body: unknown, field: string][] = [
  ['no type', { event_data: 1 }, 'event_type'],
  ['an empty type', { event_type: '' }, 'event_type'],
  ['a number as type', { event_type: 7 }, 'event_type'],
  ['null as type', { event_type: null }, 'event_type'],
  ['a type of 257 characters', { event_type: 'x'.repeat(257) }, 'event_type'],
  ['a stream_id that is no UUID', { event_type: 'a', stream_id: 'mine' }, 'stream_id'],
  ['a number as stream_id', { event_type: 'a', stream_id: 1 }, 'stream_id'],
  ['an array', [], 'body'],
  ['a string', '"text"', 'body'],
  ['null', 'null', 'body'],
  ['no body', undefined, 'body'],
  ['text that is no JSON', '{"event_type":', 'body'],
  ['two values', '{}{}', 'body'],
  ['a type of ours that is unknown', { event_type: 'svc:reboot' }, 'event_type'],
]
for (const [name, body, field] of wrong) {
  publishing(`refuses ${name} and names the field`, async () => {
    const { status, code, message } = await api.refused('POST', '/events', body)
    assert.equal([status, code], [400, 'bad_request'])
    assert.ok(message.startsWith(`${field}: `), message)
  })
}

publishing('accepts 1 MiB and refuses a byte more', async () => {
  const bodyOf = (length: number) => {
    const around = JSON.stringify({ event_type: 'big', event_data: '' }).length
    return JSON.stringify({ event_type: 'big', event_data: 'x'.repeat(length - around) })
  }
  assert.is((await api.send('POST', '/events', { body: bodyOf(1 << 20) })).status, 201)
  const { status, code } = await api.refused('POST', '/events', bodyOf((1 << 20) + 1))
  assert.equal([status, code], [413, 'payload_too_large'])
})

publishing('refuses a chunked body that is too large', async () => {
  const chunk = new TextEncoder().encode('x'.repeat(64 << 10))
  const body = ReadableStream.from(Array.from({ length: 20 }, () => chunk))
  const response = await fetch(`${server.url}/v1/events`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${api.key}` },
    body,
    duplex: 'half',
  })
  assert.is(response.status, 413)
  assert.is(((await response.json()) as { error: { code: string } }).error.code, 'payload_too_large')
})

publishing('accepts 60 levels of nesting and refuses levels that would exhaust a stack', async () => {
  const nested = (depth: number) =>
    `{"event_type":"deep","event_data":${'['.repeat(depth)}${']'.repeat(depth)}}`
  assert.is((await api.send('POST', '/events', { body: nested(60) })).status, 201)
  for (const depth of [100, 100_000]) {
    const { status, code } = await api.refused('POST', '/events', nested(depth))
    assert.equal([status, code], [400, 'bad_request'])
  }
})

publishing.run()

const data = suite('event data')

data.before(() =>
  deploy(api, 'echo', {
    'echo.ts': `import { fn } from 'svc'\nexport const back = fn({ 'on-event': 'echo' }, (e) => e.data)`,
  }),
)

const values: [name: string, value: unknown][] = [
  ['null', null],
  ['false', false],
  ['zero', 0],
  ['an empty string', ''],
  ['an array', [1, [2, null], {}]],
  ['a number that is no integer', -1.5e-7],
  ['unicode', 'Grüße, 世界 \u{1f600} \u0000 \u2028 "\\\ud800'],
  ['keys that name prototypes', JSON.parse('{"__proto__":{"a":1},"constructor":{"prototype":{"b":2}}}')],
  ['100 KB of text', 'é'.repeat(50_000)],
  ['100 KB of objects', Array.from({ length: 4000 }, (_, n) => ({ n, text: 'a "quoted" line\n' }))],
]
for (const [name, value] of values) {
  const same = (actual: unknown) => assert.is(JSON.stringify(actual), JSON.stringify(value))

  data(`comes back equal: ${name}`, async () => {
    const { event_id, event_data } = await publish(api, 'kept', value)
    same(event_data)
    same((await api.get<Event>(`/events/${event_id}`)).event_data)
    const { data: listed } = await api.page<Event>('/events?event_type=kept&limit=1')
    const reference = listed[0]?.event_data_ref
    if (reference) assert.is(reference.size, Buffer.byteLength(JSON.stringify(value)))
    else same(listed[0]?.event_data)
  })

  data(`passes through a handler and comes back equal: ${name}`, async () => {
    const run = await handle(api, 'echo', value)
    assert.is(run.status, 'succeeded', JSON.stringify(run.error))
    same(run.result)
  })
}

data('does not reach the prototypes of the service', async () => {
  await handle(api, 'echo', JSON.parse('{"__proto__":{"polluted":true}}'))
  assert.is(({} as { polluted?: boolean }).polluted, undefined)
})

data.run()

const reading = suite('reading events')

reading('returns one by id', async () => {
  const event = await publish(api, 'a:b', { n: 2 })
  assert.equal(await api.get(`/events/${event.event_id}`), event)
})

reading('lists the newest first, each in the form of the one by id', async () => {
  const published = [await publish(api, 'row', 1), await publish(api, 'row', 2), await publish(api, 'row', 3)]
  const { data, pagination } = await api.page<Event>('/events?limit=3')
  assert.equal(data, published.toReversed())
  assert.is(pagination.has_more, true)
})

reading('lists the events of one type', async () => {
  const { event_id } = await publish(api, 'only:this')
  const { data, pagination } = await api.page<Event>('/events?event_type=only:this')
  assert.equal(
    data.map((event) => event.event_id),
    [event_id],
  )
  assert.equal(pagination, { total: 1, limit: 20, offset: 0, has_more: false })
})

reading('finds no event of another environment', async () => {
  const { event_id } = await publish(other, 'theirs')
  for (const path of [`/events/${event_id}`, `/events/${event_id}/runs`]) {
    assert.is((await api.refused('GET', path)).message, `No event ${event_id}`)
    assert.is((await api.refused('GET', path.replace(event_id, newId()))).status, 404)
    assert.is((await api.refused('GET', path.replace(event_id, 'nothing'))).status, 404)
  }
  assert.is((await api.page('/events?event_type=theirs')).pagination.total, 0)
})

reading.after(() => server.stop())
reading.run()
