import * as assert from 'uvu/assert'
import { isAppError } from '../../src/errors.ts'
import type { HostCall } from '../../src/ports/runtime.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { openWorkbench, resultOf, type Workbench } from './harness.ts'

const invoke = suite<Workbench>('invoking a function')

invoke.before(async (context) => void Object.assign(context, await openWorkbench('ok')))
invoke.after(({ runtime }) => runtime.close())

invoke('returns its result', async ({ invoke }) => {
  assert.equal(await invoke('orders.handlers/add', { args: [1, 2] }), { status: 'succeeded', result: 3 })
})

invoke('returns null for a function that returns nothing', async ({ invoke }) => {
  assert.is(await resultOf(invoke('orders.handlers/nothing')), null)
})

invoke('treats .js as an ES module whatever package.json says', async () => {
  const files = {
    'package.json': '{"type":"commonjs"}',
    'a.js': "import { fn } from 'svc'\nexport default fn({}, () => 'esm')",
  }
  const { invoke, runtime } = await openWorkbench(files)
  assert.is(await resultOf(invoke('a/default')), 'esm')
  await runtime.close()
})

invoke('passes an event to a handler', async ({ invoke }) => {
  const event = {
    type: 'order:created',
    data: { n: 4 },
    id: '1',
    timestamp: '2026-01-01T00:00:00Z',
    source: 'api',
  }
  assert.equal(await resultOf(invoke('orders.handlers/onCreated', { input: { kind: 'event', event } })), {
    doubled: 8,
    type: 'order:created',
  })
})

invoke('passes a webhook request with aliases and decoded bytes', async ({ invoke }) => {
  const request = {
    method: 'POST',
    url: '/x',
    'original-url': 'http://h/x?t',
    'body-raw': 'raw',
    'body-bytes': '/wA=',
  }
  const reply = await resultOf(invoke('orders.handlers/paid', { input: { kind: 'webhook', request } }))
  assert.equal(reply, {
    status: 200,
    body: { raw: 'raw', original: 'http://h/x?t', bytes: [255, 0], keys: [...Object.keys(request), 'body'] },
  })
})

invoke('lets the function read its own run', async ({ invoke }) => {
  const run = {
    run_id: 'r1',
    stream_id: 's1',
    run_type: 'event',
    attempt: 2,
    event_id: 'e1',
    origin_run_id: 'r0',
    project_id: 'p1',
    project_name: 'shop',
  } as const
  assert.equal(await resultOf(invoke('orders.handlers/whoami', { run })), { ...run, aborted: false })
})

invoke('keeps concurrent runs apart', async ({ invoke }) => {
  const ids = Array.from({ length: 50 }, (_, n) => `run-${n}`)
  const results = await Promise.all(
    ids.map((run_id) => resultOf(invoke('orders.handlers/whoami', { run: { run_id } }))),
  )
  assert.equal(
    results.map((info) => (info as { run_id: string }).run_id),
    ids,
  )
})

invoke('executes runs in one shared process', async ({ invoke, runtime }) => {
  const identities = await Promise.all(
    Array.from({ length: 20 }, () => resultOf(invoke('orders.handlers/identity'))),
  )
  assert.is(new Set(identities).size, 1)
  assert.is(runtime.children, 1)
})

invoke('serves the host calls of the function in order', async ({ invoke }) => {
  const calls: HostCall[] = []
  const answers: Record<string, unknown> = {
    send: { event_id: 'e' },
    call: { run_id: 'r' },
    run: 7,
    context: 's3cret',
    files: [],
  }
  const onHostCall = async (call: HostCall) => {
    calls.push(call)
    return answers[call.op] ?? null
  }
  const result = await resultOf(invoke('orders.handlers/everything', { onHostCall }))
  assert.equal(result, {
    sent: { event_id: 'e' },
    called: { run_id: 'r' },
    ran: 7,
    emitted: null,
    secret: '***', // masked in results
    put: [],
    list: [],
  })
  assert.equal(calls, [
    { op: 'send', event_type: 'order:seen', event_data: { n: 1 } },
    { op: 'call', fn: 'orders.handlers/add', args: [1, 2] },
    { op: 'run', fn: 'orders.handlers/add', args: [3, 4] },
    { op: 'emit', data_type: 'token', payload: 'hello' },
    { op: 'context', key: 'KEY' },
    {
      op: 'files',
      action: 'put',
      params: { path: 'a/b.txt', content_base64: 'Y29udGVudA==', content_type: 'text/plain; charset=utf-8' },
    },
    { op: 'files', action: 'list', params: { prefix: 'a/' } },
  ])
})

invoke('completes host calls that were not awaited, in order, before the run ends', async ({ invoke }) => {
  const done: unknown[] = []
  const onHostCall = async (call: HostCall) => {
    await new Promise((resolve) => setTimeout(resolve, 2))
    if (call.op === 'emit') done.push(call.payload)
  }
  await resultOf(invoke('orders.handlers/hasty', { args: [250], onHostCall }))
  assert.equal(
    done,
    Array.from({ length: 250 }, (_, n) => n),
  )
})

invoke('sends the value of a call as it was at the call', async () => {
  const code = `
    import { emit } from 'svc'
    export const emits = (times) => {
      const row = {}
      for (row.n = 0; row.n < times; row.n++) void emit('row', row)
    }
  `
  const bench = await openWorkbench({ 'm.js': code })
  const rows: unknown[] = []
  const onHostCall = async (call: HostCall) => void (call.op === 'emit' && rows.push(call.payload))
  await resultOf(bench.invoke('m/emits', { args: [200], onHostCall }))
  assert.equal(
    rows,
    Array.from({ length: 200 }, (_, n) => ({ n })),
  )
  await bench.runtime.close()
})

const manyCalls = `
  import { call, emit, files, run } from 'svc'
  const list = (length, work) => Array.from({ length }, (_, n) => work(n))
  export const convert = async (n) => {
    await files.get('in/' + n)
    return n
  }
  export const convertAll = async (times) => {
    const done = await Promise.all(list(times, async (n) => {
      await files.get('in/' + n)
      return run('m/convert', n)
    }))
    return done.length
  }
  export const announces = async (times) => {
    const jobs = list(times, (n) => run('m/convert', n))
    await emit('started')
    return (await Promise.all(jobs)).length
  }
  export const startsMany = async (times) => {
    for (let n = 0; n < times; n++) void call('m/convert', n)
    await files.get('list')
  }
`
const emptyFile = { path: 'a', size: 0, content_base64: '' }

invoke('serves other calls of a run that awaits many child runs', async () => {
  const bench = await openWorkbench({ 'm.js': manyCalls })
  const started = Promise.withResolvers<null>()
  const onHostCall = async (call: HostCall): Promise<unknown> => {
    if (call.op === 'emit') started.resolve(null)
    return call.op === 'run' ? started.promise : null
  }
  assert.is(await resultOf(bench.invoke('m/announces', { args: [150], onHostCall })), 150)
  await bench.runtime.close()
})

invoke('reads files in a run that awaits many child runs, and in these', async () => {
  const bench = await openWorkbench({ 'm.js': manyCalls })
  const onHostCall = async (call: HostCall): Promise<unknown> => {
    if (call.op !== 'run') return emptyFile
    return resultOf(bench.invoke(call.fn, { args: call.args as readonly unknown[], onHostCall }))
  }
  assert.is(await resultOf(bench.invoke('m/convertAll', { args: [150], onHostCall })), 150)
  await bench.runtime.close()
})

invoke('reads files while many calls of another run of its process wait', async () => {
  const bench = await openWorkbench({ 'm.js': manyCalls })
  const { promise: allowed, resolve: allow } = Promise.withResolvers<void>()
  const first = Promise.withResolvers<null>()
  const starting = bench.invoke('m/startsMany', {
    args: [150],
    untilAllowed: ({ op }) => (op === 'call' ? allowed : null),
    onHostCall: async ({ op }) => (op === 'files' ? (first.resolve(null), emptyFile) : null),
  })
  const onHostCall = async () => emptyFile
  assert.is(await resultOf(bench.invoke('m/convert', { args: [1], onHostCall })), 1)
  await first.promise
  allow()
  await resultOf(starting)
  await bench.runtime.close()
})

invoke('throws an error of the service inside the function', async ({ invoke }) => {
  const refusal = Object.assign(new Error('No such variable'), { code: 'not_found' })
  const result = await resultOf(
    invoke('orders.handlers/refused', { onHostCall: () => Promise.reject(refusal) }),
  )
  assert.equal(result, { code: 'not_found', message: 'No such variable' })
})

invoke('captures the output of the run, and only that', async ({ invoke }) => {
  const lines: unknown[] = []
  const others: unknown[] = []
  await Promise.all([
    invoke('orders.handlers/prints', { onLog: (line) => lines.push(line) }),
    invoke('orders.handlers/later', { args: [5], onLog: (line) => others.push(line) }),
  ])
  assert.equal(lines, [
    { source: 'stdout', text: 'to stdout { a: 1 }' },
    { source: 'stderr', text: 'to stderr' },
    { source: 'stdout', text: 'no newline' },
  ])
  assert.equal(others, [])
})

invoke('names a missing function', async ({ failure }) => {
  assert.equal(await failure('orders.handlers/absent'), {
    code: 'function_not_found',
    message: 'Expected orders/handlers.ts to export a function absent, got none',
  })
  assert.is((await failure('no.such/thing')).code, 'function_not_found')
  assert.is((await failure('orders.handlers/NotAFunction')).code, 'function_not_found')
  assert.is((await failure('orders.handlers/toString')).code, 'function_not_found')
  assert.is((await failure('_internal.math/double')).code, 'function_not_found')
})

invoke('queues runs beyond the limit of a child, first in first out', async () => {
  const bench = await openWorkbench('ok', { runsPerChild: 1 })
  const order: number[] = []
  const runs = [400, 300, 200, 100, 1].map(async (ms, index) => {
    await resultOf(bench.invoke('orders.handlers/later', { args: [ms] }))
    order.push(index)
  })
  await Promise.all(runs)
  assert.equal(order, [0, 1, 2, 3, 4])
  await bench.runtime.close()
})

invoke('rejects with the code of the error that prevented loading the build', async ({ build, invoke }) => {
  try {
    await invoke('a/b', { build: { ...build, hash: 'a'.repeat(64) } })
    assert.unreachable()
  } catch (error) {
    assert.is((error as { code?: string }).code, 'unavailable')
  }
})

invoke.run()

const lifetime = suite<Workbench>('a child')

lifetime('starts before the first run when it is prewarmed', async () => {
  const { runtime, build } = await openWorkbench('ok')
  runtime.prewarm(build)
  await until(() => runtime.children === 1)
  await runtime.close()
})

lifetime('is the only one of its build, however many runs start at once', async () => {
  const { runtime, invoke } = await openWorkbench('ok')
  await Promise.all(Array.from({ length: 30 }, () => resultOf(invoke('orders.handlers/identity'))))
  assert.is(runtime.children, 1)
  await runtime.close()
})

lifetime('is replaced after its number of runs', async () => {
  const { runtime, invoke } = await openWorkbench('ok', { replaceAfterRuns: 3 })
  const identities = []
  for (let n = 0; n < 7; n++) identities.push(await resultOf(invoke('orders.handlers/identity')))
  assert.is(new Set(identities).size, 3)
  await runtime.close()
})

lifetime('ends after its current runs when it uses too much memory', async () => {
  const { runtime, invoke } = await openWorkbench('ok', { rssMb: 1, pingMs: 10 })
  const first = await resultOf(invoke('orders.handlers/identity'))
  assert.is(await resultOf(invoke('orders.handlers/later', { args: [200] })), 'done')
  // A service that stood still meanwhile has sent no ping, and learns of the memory later.
  await until(async () => (await resultOf(invoke('orders.handlers/identity'))) !== first)
  await runtime.close()
})

lifetime('ends when more children are idle than allowed', async () => {
  const { runtime, build } = await openWorkbench('ok', { maxIdle: 1 })
  for (const env_id of ['a', 'b', 'c']) runtime.prewarm({ ...build, env_id })
  await until(() => runtime.children > 1)
  await until(() => runtime.children === 1)
  await runtime.close()
})

lifetime('ends when it was idle for too long', async () => {
  const { runtime, invoke } = await openWorkbench('ok', { idleMs: 50 })
  await invoke('orders.handlers/nothing')
  assert.is(runtime.children, 1)
  await until(() => runtime.children === 0)
  await runtime.close()
})

lifetime('ends for another environment when the number of children is reached', async () => {
  const { runtime, build, invoke } = await openWorkbench('ok', { maxChildren: 1 })
  const mine = await resultOf(invoke('orders.handlers/identity'))
  const theirs = await resultOf(
    invoke('orders.handlers/identity', { build: { ...build, env_id: 'another' } }),
  )
  assert.is.not(mine, theirs)
  assert.is(runtime.children, 1)
  await runtime.close()
})

lifetime('is not shared between environments', async () => {
  const { runtime, build, invoke } = await openWorkbench('ok')
  await invoke('orders.handlers/nothing')
  runtime.prewarm({ ...build, env_id: 'another' })
  await until(() => runtime.children === 2)
  await runtime.close()
})

lifetime('is shared only by runs of one project with the same rights', async () => {
  const { runtime, build, invoke } = await openWorkbench('ok')
  const identityOf = (lane: object) =>
    resultOf(invoke('orders.handlers/identity', { build: { ...build, ...lane } }))
  const lanes = [
    {},
    { project_id: 'another' },
    { rights: { context: [] } },
    { rights: { context: ['A', 'B'] } },
    { rights: { evaluator: 'one' } },
    { rights: { evaluator: 'another' } },
  ]
  const identities = []
  for (const lane of lanes) identities.push(await identityOf(lane))
  assert.is(new Set(identities).size, lanes.length)
  assert.is(await identityOf({ rights: { context: ['B', 'A', 'A'] } }), identities[3])
  await runtime.close()
})

lifetime('ends with the runtime: its runs are lost, and later runs are refused', async () => {
  const { runtime, invoke } = await openWorkbench('ok')
  const running = invoke('orders.handlers/waits')
  await resultOf(invoke('orders.handlers/identity'))
  await runtime.close()
  assert.is((await running).status, 'lost')
  const refusal = await invoke('orders.handlers/identity').catch((error: unknown) => error)
  assert.ok(isAppError(refusal, 'unavailable'))
  assert.is(runtime.children, 0)
})

lifetime.run()
