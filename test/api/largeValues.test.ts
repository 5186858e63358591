import * as assert from 'uvu/assert'
import { deploy, handle, type Run } from '../support/build.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { hookUrls } from './hooks.ts'

const MIB = 1 << 20
const server = await startServer()
const { api } = server

await deploy(api, 'hooks', {
  'large.js': `
import { fn, call, emit, run, send } from 'svc'
export const text = (size) => 'x'.repeat(size)
export const objects = (count) => Array.from({ length: count }, () => ({}))
export const event = fn({ 'on-event': 'large' }, ({ data }) => ({ length: data.length, first: data[0] }))
export const length = (list, ...rest) => ({ length: list.length, rest })
export const outer = async (count) => {
  const list = await run('large/objects', count)
  const inner = await run('large/length', list, 'more')
  const { run_id } = await call('large/length', list, 'later')
  const { event_id } = await send('large', list)
  await emit('many', list)
  return { count: list.length, inner, run_id, event_id }
}
export const hook = fn({ webhook: { service: 's.1', path: '/hook' } }, ({ query }) => ({
  status: 201, headers: { 'x-kind': 'large' }, body: { text: 'y'.repeat(Number(query.size)) },
}))
export const bare = fn({ webhook: { service: 's.1', path: '/bare' } }, ({ query }) => ['z'.repeat(Number(query.size))])
export const wide = fn({ webhook: { service: 's.1', path: '/wide' } }, () => ({ status: 200, headers: { a: 'b'.repeat(100_000) } }))
`,
})
const urls = await hookUrls(api)

const large = suite('a large value')

large('of a run is null in lists, with a reference to the request that returns it', async () => {
  const run = await handle(api, 'svc:call', { fn: 'large/text', args: [MIB] })
  const listed = (await api.page<Run>('/runs?limit=100')).data.find(({ run_id }) => run_id === run.run_id)
  assert.is(listed?.result, null)
  assert.equal(listed?.result_ref, { size: MIB + 2, href: `/v1/runs/${run.run_id}` })
  const whole = await api.get<Run>(`/runs/${run.run_id}`)
  assert.is((whole.result as string).length, MIB)
  assert.not('result_ref' in whole)
})

large('of many objects arrives unchanged everywhere', async () => {
  const count = 300_000
  const run = await handle(api, 'svc:call', { fn: 'large/outer', args: [count] })
  const { run_id, event_id, ...result } = run.result as Record<string, string>
  assert.equal(result, { count, inner: { length: count, rest: ['more'] } })
  await until(async () => {
    const called = await api.get<Run>(`/runs/${run_id}`)
    return JSON.stringify(called.result) === JSON.stringify({ length: count, rest: ['later'] })
  })
  await until(async () => {
    const [handled] = (await api.page<Run>(`/events/${event_id}/runs`)).data
    return JSON.stringify(handled?.result) === JSON.stringify({ length: count, first: {} })
  })
  const event = await api.get<{ event_data: unknown[] }>(`/events/${event_id}`)
  assert.is(event.event_data.length, count)
  const [listed] = (
    await api.page<{ event_data: unknown; event_data_ref: unknown }>('/events?event_type=large')
  ).data
  assert.equal(
    [listed?.event_data, listed?.event_data_ref],
    [null, { size: 3 * count + 1, href: `/v1/events/${event_id}` }],
  )
  const { text: stream } = await api.send('GET', `/streams/${run.stream_id}/subscribe?from=start`)
  const data = stream.split('\n').filter((line) => line.startsWith('data: {"type":"stream:data"'))
  assert.is((JSON.parse(data[0]?.slice(6) ?? '') as { payload: unknown[] }).payload.length, count)
  assert.match(stream, /event: stream:complete/)
})

large('fills a page of a list; further values are references', async () => {
  const runs = 40
  for (let n = 0; n < runs; n++) await handle(api, 'svc:call', { fn: 'large/text', args: [60_000] })
  const { data } = await api.page<Run>(`/runs?limit=${runs}`)
  const inline = data.filter(({ result }) => result !== null)
  assert.ok(inline.length > 10 && inline.length < 20, `${inline.length} values are in the page`)
  assert.equal(data.at(-1)?.result_ref?.size, 60_002)
})

large('is the body of a webhook reply, with the status and the headers of the function', async () => {
  for (const size of [10, 100_000, 5 * MIB]) {
    const reply = await fetch(`${urls.get('POST s.1/hook')}?size=${size}`, { method: 'POST' })
    assert.equal([reply.status, reply.headers.get('x-kind')], [201, 'large'])
    assert.is(((await reply.json()) as { text: string }).text.length, size)
    const bare = await fetch(`${urls.get('POST s.1/bare')}?size=${size}`, { method: 'POST' })
    assert.is(bare.status, 200)
    assert.is(((await bare.json()) as string[])[0]?.length, size)
  }
})

large('is refused as the headers of a webhook reply', async () => {
  const reply = await fetch(`${urls.get('POST s.1/wide')}`, { method: 'POST' })
  assert.is(reply.status, 500)
  const { error } = (await reply.json()) as { error: Record<string, string> }
  const run = await api.get<Run>(`/runs/${error['run_id']}`)
  assert.match(run.error?.message ?? '', /headers: expected at most/)
})

large('of evaluated code is replied, and replied again for the same Idempotency-Key', async () => {
  const headers = { 'Idempotency-Key': 'one' }
  const ask = () =>
    api.send('POST', '/projects/hooks/eval', { body: { code: `'x'.repeat(${MIB})` }, headers })
  const first = await ask()
  assert.is(first.status, 201)
  assert.is((first.json as { data: { result: string } }).data.result.length, MIB)
  const again = await ask()
  assert.is(again.headers.get('Idempotency-Replayed'), 'true')
  assert.is(again.text, first.text)
})

large('is announced to a HEAD request with its size', async () => {
  const run = await handle(api, 'svc:call', { fn: 'large/text', args: [MIB] })
  const reply = await api.send('HEAD', `/runs/${run.run_id}`)
  assert.is(reply.status, 200)
  assert.ok(Number(reply.headers.get('content-length')) > MIB)
})

large.after(() => server.stop())
large.run()
