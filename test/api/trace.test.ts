import * as assert from 'uvu/assert'
import { newId } from '../../src/ids.ts'
import { call, deploy, handle, handled, publish, type Run, runsOf, type Webhook } from '../support/build.ts'
import { openApi } from '../support/http.ts'
import { startWithOther } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

interface Node {
  readonly kind: 'event' | 'run'
  readonly event?: {
    readonly event_id: string
    readonly event_type: string
    readonly sent_by_run_id: string | null
  }
  readonly run?: {
    readonly run_id: string
    readonly fn: string
    readonly status: string
    readonly attempt: number
  }
  readonly cut: boolean
  readonly children: readonly Node[]
}
interface Trace {
  readonly run_id: string
  readonly nodes: number
  readonly cut: boolean
  readonly root: Node
}
interface Input {
  readonly kind: string | null
  readonly event: { readonly id: string; readonly type: string; readonly source: string } | null
  readonly value: unknown
  readonly cleared: boolean
}

const server = await startWithOther()
const { api, other } = server
await deploy(api, 'work', {
  'f.js': `import { currentRun, fn, run, send } from 'svc'
    export const onOrder = fn({ 'on-event': 'order', retry: { attempts: 1, delay: 1 } }, async () => {
      await run('f/charge', 5)
      if (currentRun().attempt === 1) throw new Error('again')
      await send('paid', { n: 1 })
    })
    export const charge = (n) => n
    export const onPaid = fn({ 'on-event': 'paid' }, () => 'done')
    export const many = async () => { for (let i = 0; i < 120; i++) await send('nothing', i) }
    export const all = (...args) => args
    export const hook = fn({ webhook: { service: 'web', path: '/in' }, 'secret-headers': ['x-key'] }, () => 1)`,
})

/** A node as one line with its children, without ids. */
const shapeOf = ({ event, run, children }: Node): unknown[] => [
  event ? event.event_type : `${run?.fn} ${run?.attempt} ${run?.status}`,
  ...children.map(shapeOf),
]

const keyWith = async (permissions: object) => {
  const { token } = await api.post<{ token: string }>('/service-keys', { name: newId(), permissions })
  return openApi(api.url, token)
}

const traces = suite('the trace of a run')

const TREE = [
  'order',
  ['f/onOrder 1 failed', ['f/charge 1 succeeded']],
  ['f/onOrder 2 succeeded', ['f/charge 1 succeeded'], ['paid', ['f/onPaid 1 succeeded']]],
]

traces('begins with its event and contains attempts, children and sent events', async () => {
  const { event_id } = await publish(api, 'order')
  const [second, first] = (await handled(api, event_id, 2)) as [Run, Run]
  const trace = await until(async () => {
    const found = await api.get<Trace>(`/runs/${first.run_id}/trace`)
    return found.nodes === 7 && JSON.stringify(found).includes('onPaid') ? found : undefined
  })
  await until(async () => {
    const { root } = await api.get<Trace>(`/runs/${first.run_id}/trace`)
    return JSON.stringify(shapeOf(root)) === JSON.stringify(TREE)
  })
  assert.equal([trace.run_id, trace.cut, trace.root.event?.event_id], [first.run_id, false, event_id])
  const paid = trace.root.children[1]?.children[1]
  assert.is(paid?.event?.sent_by_run_id, second.run_id)
  const child = trace.root.children[0]?.children[0]?.run?.run_id ?? ''
  assert.equal(shapeOf((await api.get<Trace>(`/runs/${child}/trace`)).root), TREE)
  assert.is(
    (await api.get<{ sent_by_run_id: string }>(`/events/${paid?.event?.event_id}`)).sent_by_run_id,
    second.run_id,
  )
})

traces('is cut after a hundred events and runs', async () => {
  const { run_id } = await call(api, 'f/many')
  const { nodes, cut, root } = await api.get<Trace>(`/runs/${run_id}/trace`)
  assert.equal([nodes, cut, root.cut, root.children[0]?.cut], [100, true, false, true])
  assert.is(root.children[0]?.children.length, 98)
})

traces('of another environment or of no run is a 404', async () => {
  const { run_id } = await call(api, 'f/all')
  for (const part of ['trace', 'input']) {
    assert.is((await other.refused('GET', `/runs/${run_id}/${part}`)).message, `No run ${run_id}`)
    assert.is((await api.refused('GET', `/runs/${newId()}/${part}`)).status, 404)
  }
})

traces('needs the permission to read events', async () => {
  const { run_id } = await call(api, 'f/all')
  const runs = await keyWith({ 'run:*': ['read'] })
  assert.is((await runs.send('GET', `/runs/${run_id}/trace`)).status, 403)
  const both = await keyWith({ 'run:*': ['read'], 'event:*': ['read'] })
  assert.is((await both.send('GET', `/runs/${run_id}/trace`)).status, 200)
})

traces.run()

const inputs = suite('the input of a run')

const inputOf = (run_id: string): Promise<Input> => api.get(`/runs/${run_id}/input`)

inputs('of a handler is its event', async () => {
  const { run_id, event_id } = await handle(api, 'paid', { n: 2 })
  const { kind, event, value, cleared } = await inputOf(run_id)
  assert.equal([kind, value, cleared], ['event', { n: 2 }, false])
  assert.equal([event?.id, event?.type, event?.source], [event_id, 'paid', 'api'])
})

inputs('of a handler is hidden from a credential that may not read events', async () => {
  const { run_id } = await handle(api, 'paid', { n: 2 })
  const called = await call(api, 'f/all', 7)
  const runs = await keyWith({ 'run:*': ['read'] })
  const hidden = { run_id, kind: 'event', event: null, value: null, cleared: false }
  assert.equal(await runs.get(`/runs/${run_id}/input`), hidden)
  assert.equal((await runs.get<Input>(`/runs/${called.run_id}/input`)).value, [7])
  const both = await keyWith({ 'run:*': ['read'], 'event:*': ['read'] })
  assert.equal((await both.get<Input>(`/runs/${run_id}/input`)).value, { n: 2 })
})

inputs('of a call and of a child are the arguments, also large ones', async () => {
  const text = 'é'.repeat(50_000)
  for (const args of [[], [1, { a: 2 }], [text]]) {
    const { run_id } = await call(api, 'f/all', ...args)
    const input = await inputOf(run_id)
    assert.equal([input.kind, input.event, input.value], ['args', null, args])
  }
  const large = await handle(api, 'paid', { text })
  assert.equal((await inputOf(large.run_id)).value, { text })
})

inputs('of a replay is that of the first run', async () => {
  const run = await call(api, 'f/all', 7)
  const { event_id } = await api.post<{ event_id: string }>(`/runs/${run.run_id}/replay`)
  const [again] = await until(async () => {
    const runs = await runsOf(api, event_id)
    return runs.length > 0 ? runs : undefined
  })
  assert.equal((await inputOf(again?.run_id ?? '')).value, [7])
})

inputs('of a webhook has its secrets masked', async () => {
  const [webhook] = (await api.page<Webhook>('/projects/work/webhooks')).data
  const headers = { 'x-key': 'secret-1', authorization: 'Bearer secret-2', 'x-open': 'yes' }
  await fetch(webhook?.url ?? '', { method: 'POST', body: '{"a":1}', headers })
  const [run] = (await api.page<Run>('/runs?fn=f/hook')).data
  const { kind, value } = await inputOf(run?.run_id ?? '')
  const request = value as { headers: Record<string, string>; body: unknown }
  assert.equal([kind, request.body, request.headers['x-open']], ['webhook', { a: 1 }, 'yes'])
  assert.equal([request.headers['x-key'], request.headers['authorization']], ['***', '***'])
  assert.not.match(JSON.stringify(value), /secret-\d|original-url/)
})

inputs.run()

const reasons = suite('the explanation of a run')

reasons('names its event, its caller and its end, as far as the credential may know', async () => {
  const { run_id, event_id } = await handle(api, 'paid', { n: 3 })
  const { why, outcome } = await api.get<{ why: string[]; outcome: string }>(`/runs/${run_id}/why`)
  assert.match(why.join(' '), `The event paid (${event_id}) was published by the api-key`)
  assert.match(outcome, /^It succeeded at /)
  const { token } = await api.post<{ token: string }>('/service-keys', { permissions: { 'run:*': ['read'] } })
  const limited = await openApi(api.url, token).get<{ why: string[] }>(`/runs/${run_id}/why`)
  assert.not.match(limited.why.join(' '), 'paid (')
  assert.not.match(limited.why.join(' '), 'api-key')
  assert.is((await other.send('GET', `/runs/${run_id}/why`)).status, 404)
})

reasons.after(() => server.stop())
reasons.run()
