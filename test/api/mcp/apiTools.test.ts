import * as assert from 'uvu/assert'
import { newId } from '../../../src/ids.ts'
import type { Permissions } from '../../../src/events/org.ts'
import { call, deploy, ended, handle, publish, type Run, runsOf } from '../../support/build.ts'
import { startWithOther } from '../../support/server.ts'
import { suite } from '../../support/suite.ts'
import { until } from '../../support/until.ts'
import { newServiceKey, newSession } from '../issuing.ts'
import { type Called, callTool, connect, textOf, TOOLS } from './client.ts'

const server = await startWithOther()
const { api, other } = server
await deploy(api, 'shop', TOOLS)
const { client } = await connect(api.url, api.key)
const foreign = await connect(other.url, other.key)
const placed = await handle(api, 'order:placed', { id: 7 })
const failed = await call(api, 'shop/fails')

/** The structured content of a call that must succeed. */
const read = async <T>(name: string, args: object = {}, by = client): Promise<T> => {
  const called = await callTool(by, name, args)
  assert.not(called.isError, textOf(called))
  assert.equal(JSON.parse(textOf(called)), called.structuredContent)
  return called.structuredContent as T
}

const refused = async (name: string, args: object, by = client): Promise<string> => {
  const called: Called = await callTool(by, name, args)
  assert.is(called.isError, true, JSON.stringify(called).slice(0, 300))
  return textOf(called)
}

const namesFor = async (permissions: Permissions): Promise<string[]> => {
  const { token } = await newSession(api, permissions)
  const limited = await connect(api.url, token)
  const { tools } = await limited.client.listTools()
  await limited.client.close()
  return tools.map(({ name }) => name).sort()
}

const tools = suite('tools that read and control the environment', { timeoutMs: 60_000 })

tools('are listed for a key that may do everything, with hints about changes', async () => {
  const { tools: listed } = await client.listTools()
  const hints = new Map(listed.map(({ name, annotations }) => [name, annotations?.readOnlyHint]))
  for (const name of [
    'list_runs',
    'get_run',
    'why',
    'search_events',
    'list_functions',
    'deploy_status',
    'docs_search',
  ])
    assert.is(hints.get(name), true, name)
  for (const name of ['send_event', 'replay_runs']) assert.is(hints.get(name), false, name)
})

tools('are listed only if the credential may use them', async () => {
  assert.equal(await namesFor({ 'stream:*': ['read'] }), ['docs_search'])
  assert.equal(await namesFor({ 'run:*': ['read'] }), ['docs_search', 'get_run', 'list_runs', 'why'])
  assert.equal(await namesFor({ 'event:*': ['read'] }), ['docs_search', 'search_events'])
  assert.equal(await namesFor({ 'event:order:placed': ['create'] }), ['docs_search', 'send_event'])
  assert.equal(await namesFor({ 'build:shop': ['read'] }), ['deploy_status', 'docs_search', 'list_functions'])
  assert.equal(await namesFor({ 'run:*': ['read'], 'event:svc:replay': ['create'] }), [
    'docs_search',
    'get_run',
    'list_runs',
    'replay_runs',
    'send_event',
    'why',
  ])
})

tools('have schemas without references', async () => {
  const { tools: listed } = await client.listTools()
  assert.not.match(JSON.stringify(listed), /\$ref|documented/)
})

tools('list runs with the filters of the API, and refuse others', async () => {
  const { data, pagination } = await read<{ data: Run[]; pagination: { total: number } }>('list_runs', {
    status: 'failed',
    fn: 'shop/fails',
    limit: 5,
  })
  assert.equal([data[0]?.run_id, pagination.total], [failed.run_id, 1])
  assert.match(await refused('list_runs', { state: 'failed' }), 'state: unknown field; expected limit')
  assert.match(await refused('list_runs', { status: 'bad' }), 'status: expected one of running')
  assert.match(await refused('list_runs', { stream: 'x' }), 'stream: expected a UUID')
})

tools('return one run with its place in the source, input, logs and trace', async () => {
  const { run, input, logs, trace } = await read<{
    run: Run
    input: { value: unknown }
    logs: { lines: unknown[] }
    trace?: object
  }>('get_run', { run_id: failed.run_id })
  assert.equal([run.run_id, run.status, run.error?.location?.file], [failed.run_id, 'failed', 'shop.js'])
  assert.equal([input.value, logs.lines], [[], []])
  assert.match(JSON.stringify(trace), failed.run_id)
})

tools('return the newest lines of a long log, which an agent can read', async () => {
  const { run_id } = await call(api, 'shop/prints', 12_000)
  const { logs } = await read<{ logs: { lines: { text: string }[]; earlier_lines: number; href: string } }>(
    'get_run',
    { run_id },
  )
  const { lines: stored } = await api.get<{ lines: { text: string }[] }>(`/runs/${run_id}/logs`)
  assert.ok(JSON.stringify(logs).length < 40_000)
  assert.ok(logs.lines.length > 100)
  assert.equal(logs.lines, stored.slice(-logs.lines.length))
  assert.is(logs.earlier_lines, stored.length - logs.lines.length)
  assert.is(logs.href, `/v1/runs/${run_id}/logs`)
})

tools('leave the trace and the event out for a key that may not read events', async () => {
  const { token } = await newServiceKey(api, { 'run:*': ['read'] })
  const limited = await connect(api.url, token)
  const got = await read<object>('get_run', { run_id: failed.run_id }, limited.client)
  assert.equal(Object.keys(got).sort(), ['input', 'logs', 'run'])
  const { input } = await read<{ input: object }>('get_run', { run_id: placed.run_id }, limited.client)
  assert.equal(input, { run_id: placed.run_id, kind: 'event', event: null, value: null, cleared: false })
  const { why } = await read<{ why: string[] }>('why', { run_id: placed.run_id }, limited.client)
  assert.not.match(why.join('\n'), 'order:placed')
  await limited.client.close()
})

tools('explain why a run started and how it ended', async () => {
  const event = await read<{ why: string[]; outcome: string }>('why', { run_id: placed.run_id })
  assert.match(
    event.why.join('\n'),
    `The event order:placed (${placed.event_id}) was published by the api-key`,
  )
  assert.match(event.outcome, 'It succeeded at')
  const failure = await read<{ why: string[]; outcome: string }>('why', { run_id: failed.run_id })
  assert.match(failure.why.join('\n'), 'called as a background run')
  assert.match(failure.outcome, /It failed with function_failed at shop\.js:\d+:\d+: .*Sold out/)
})

tools('explain the run of a tool by the key that called it', async () => {
  const { _meta } = await callTool(client, 'ledger_shop_books')
  const { why } = await read<{ why: string[] }>('why', { run_id: _meta?.['svc/run_id'] })
  assert.match(
    why.join('\n'),
    /It was called at \S+ by the api-key [0-9a-f-]{36}: by its webhook, or as a tool/,
  )
})

tools('search events by type', async () => {
  const { data } = await read<{ data: { event_id: string; event_data: unknown }[] }>('search_events', {
    event_type: 'order:placed',
  })
  assert.ok(data.some(({ event_id }) => event_id === placed.event_id))
  assert.equal(data.find(({ event_id }) => event_id === placed.event_id)?.event_data, { id: 7 })
})

tools('send an event that starts its handlers', async () => {
  const sent = await read<{ event_id: string; handlers: number }>('send_event', {
    event_type: 'order:placed',
    event_data: { id: 8 },
  })
  assert.is(sent.handlers, 1)
  const run = await until(async () => (await runsOf(api, sent.event_id))[0])
  assert.equal((await ended(api, run.run_id)).result, { id: 8 })
})

tools('send events only of the types that the key permits', async () => {
  const { token } = await newServiceKey(api, { 'event:order:placed': ['create'] })
  const limited = await connect(api.url, token)
  assert.match(
    await refused('send_event', { event_type: 'svc:replay', event_data: {} }, limited.client),
    'forbidden: The credential lacks the permission event:svc:replay create',
  )
  await read('send_event', { event_type: 'order:placed', event_data: null }, limited.client)
  await limited.client.close()
})

tools('preview a replay without an effect, and replay only when confirmed', async () => {
  const run_ids = [placed.run_id, newId(), placed.run_id]
  const replaysOf = async () =>
    (await api.page<Run>('/runs?limit=100')).data.filter(({ replay_of }) => replay_of === placed.run_id)
  const before = await read<{ preview: boolean; runs: { replayable: boolean; reason?: string }[] }>(
    'replay_runs',
    { run_ids },
  )
  assert.equal([before.preview, before.runs.map(({ replayable }) => replayable)], [true, [true, false]])
  assert.match(before.runs[1]?.reason ?? '', 'No run')
  assert.is((await replaysOf()).length, 0)
  const after = await read<{ preview: boolean; runs: { replayed?: boolean; event_id?: string }[] }>(
    'replay_runs',
    { run_ids, confirm: true },
  )
  assert.equal([after.preview, after.runs.map(({ replayed }) => replayed)], [false, [true, undefined]])
  await until(async () => (await replaysOf()).length === 1)
})

tools('refuse a replay of more than 20 runs at a time', async () => {
  const run_ids = Array.from({ length: 21 }, () => newId())
  assert.match(await refused('replay_runs', { run_ids }), 'run_ids: ')
})

tools('list functions and what is deployed', async () => {
  const { data, pagination } = await read<{
    data: { project: string; fn: string; mcp?: object }[]
    pagination: { total: number }
  }>('list_functions', { project: 'shop', limit: 100 })
  assert.is(data.length, pagination.total)
  assert.equal(data.find(({ fn }) => fn === 'shop/books')?.mcp, { service: 'ledger', description: 'Books' })
  const { projects } = await read<{ projects: { project: string; deployed: { functions: number } }[] }>(
    'deploy_status',
  )
  assert.equal(
    projects.map(({ project, deployed }) => [project, deployed.functions]),
    [['shop', pagination.total]],
  )
  assert.match(await refused('deploy_status', { project: 'none' }), 'not_found: No project "none"')
})

tools('show only the projects that the key may read', async () => {
  await api.post('/projects', { name: 'hidden' })
  const { token } = await newSession(api, { 'build:shop': ['read'] })
  const limited = await connect(api.url, token)
  const { projects } = await read<{ projects: { project: string }[] }>('deploy_status', {}, limited.client)
  assert.equal(
    projects.map(({ project }) => project),
    ['shop'],
  )
  assert.match(await refused('list_functions', { project: 'hidden' }, limited.client), 'not_found')
  await limited.client.close()
})

tools('find nothing of another environment', async () => {
  const event = await publish(api, 'order:placed', { secret: 1 })
  for (const name of ['get_run', 'why'])
    assert.match(await refused(name, { run_id: placed.run_id }, foreign.client), 'not_found: No run')
  assert.is((await read<{ data: unknown[] }>('list_runs', {}, foreign.client)).data.length, 0)
  assert.is((await read<{ data: unknown[] }>('list_functions', {}, foreign.client)).data.length, 0)
  const { data } = await read<{ data: { event_id: string }[] }>('search_events', {}, foreign.client)
  assert.not(data.some(({ event_id }) => event_id === event.event_id))
  const { runs } = await read<{ runs: { replayable: boolean }[] }>(
    'replay_runs',
    { run_ids: [placed.run_id], confirm: true },
    foreign.client,
  )
  assert.equal(
    runs.map(({ replayable }) => replayable),
    [false],
  )
  assert.match(
    await refused(
      'send_event',
      { event_type: 'a', event_data: null, stream_id: placed.stream_id },
      foreign.client,
    ),
    'not_found',
  )
})

tools('find the documentation', async () => {
  const { results } = await read<{ results: { path: string; text: string }[] }>('docs_search', {
    query: 'verify the signature of a Stripe webhook',
    limit: 3,
  })
  assert.is(results.length, 3)
  assert.ok(results.some(({ text }) => /stripe/i.test(text)))
  for (const { path } of results) assert.is((await api.send('GET', `${api.url}${path}`)).status, 200, path)
  assert.equal(await read('docs_search', { query: 'zzqqxx' }), { results: [] })
})

tools.after(async () => {
  await client.close()
  await foreign.client.close()
  await server.stop()
})
tools.run()
