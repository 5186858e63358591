import * as assert from 'uvu/assert'
import type { FunctionSpec } from '../../../src/events/project.ts'
import { Directory } from '../../../src/projections/directory.ts'
import type { RunDoc } from '../../../src/projections/runs.ts'
import { planRuns } from '../../../src/commands/events/planRuns.ts'
import { suite } from '../../support/suite.ts'

const EVENT = '01900000-0000-7000-8000-000000000001'
const SHOP = '01900000-0000-7000-8000-0000000000a1'
const STORE = '01900000-0000-7000-8000-0000000000a2'

const onCreated: FunctionSpec = {
  ns: 'orders',
  var: 'onCreated',
  on_event: 'order:created',
  retry: { attempts: 3, delay: 1000 },
  timeout: 5000,
}
const audit: FunctionSpec = {
  ns: 'audit',
  var: 'all',
  on_event: 'order:created',
  retry: { attempts: 0, delay: 1000 },
}
const add: FunctionSpec = { ns: 'math', var: 'add' }

const directory = new Directory(() => Promise.reject(new Error('the blobs are empty')))
await directory.seed({
  orgs: [{ org_id: 'org', slug: 'local', plan: 'self_host' }],
  envs: [
    { env_id: 'env', org_id: 'org', name: 'dev' },
    { env_id: 'other', org_id: 'org', name: 'prod' },
  ],
  projects: [
    { project_id: SHOP, env_id: 'env', name: 'shop', network: null },
    { project_id: STORE, env_id: 'env', name: 'store', network: null },
    { project_id: 'theirs', env_id: 'other', name: 'shop', network: null },
  ],
  builds: [
    {
      build_id: 'b1',
      project_id: SHOP,
      hash: 'h1',
      deployed: true,
      build_type: 'release',
      updated_at: '',
      functions: [onCreated, add],
    },
    {
      build_id: 'b2',
      project_id: STORE,
      hash: 'h2',
      deployed: true,
      build_type: 'release',
      updated_at: '',
      functions: [audit, add],
    },
    {
      build_id: 'b0',
      project_id: SHOP,
      hash: 'h0',
      deployed: false,
      build_type: 'release',
      updated_at: '',
      functions: [onCreated],
    },
    {
      build_id: 'b3',
      project_id: 'theirs',
      hash: 'h3',
      deployed: true,
      build_type: 'release',
      updated_at: '',
      functions: [onCreated, { ns: 'secret', var: 'fn' }],
    },
  ],
  domains: [],
  cursor: '',
})

const dispatched = (
  event_type: string,
  data?: unknown,
  { env_id = 'env', replayed = null as RunDoc | null } = {},
) =>
  planRuns(
    { event_id: EVENT, stream_id: 's', event_type },
    data,
    { env_id, revision: 4 },
    { directory, replayed },
  )
const plansOf = (...args: Parameters<typeof dispatched>) => {
  const found = dispatched(...args)
  return found.kind === 'start'
    ? found.functions.map(found.planOf)
    : assert.unreachable('expected runs to start')
}
const targets = (...args: Parameters<typeof dispatched>) =>
  (plansOf(...args) ?? []).map(({ project_name, target, run_type }) => [
    project_name,
    'ns' in target && `${target.ns}/${target.var}`,
    run_type,
  ])

const handlers = suite('an event')
handlers('starts each handler of the deployed builds of its environment', () => {
  assert.equal(targets('order:created'), [
    ['shop', 'orders/onCreated', 'event'],
    ['store', 'audit/all', 'event'],
  ])
  assert.equal(targets('order:created', undefined, { env_id: 'other' }), [
    ['shop', 'orders/onCreated', 'event'],
  ])
  assert.equal(targets('order:paid'), [])
  assert.equal(targets('order:created', undefined, { env_id: 'nowhere' }), [])
})
handlers('plans the whole run', () => {
  const [plan] = plansOf('order:created') ?? []
  assert.equal(plan, {
    run_id: plan?.run_id,
    stream_id: 's',
    run_type: 'event',
    build_id: 'b1',
    project_id: SHOP,
    project_name: 'shop',
    target: { ns: 'orders', var: 'onCreated' },
    timeout: 5000,
    retry: { attempts: 3, delay: 1000 },
    attempt: 1,
    event_id: EVENT,
    input_at: { stream_id: 's', revision: 4 },
  })
})
handlers('with no attempts has no retry', () => assert.is(plansOf('order:created')?.[1]?.retry, undefined))
handlers('plans the same ids on every delivery, and on every version of this code (I3)', () => {
  const ids = (plansOf('order:created') ?? []).map(({ run_id }) => run_id)
  assert.equal(
    ids,
    (plansOf('order:created') ?? []).map(({ run_id }) => run_id),
  )
  assert.is(new Set(ids).size, 2)
  assert.equal(ids, ['01900000-0000-8407-a75b-a1a12be85832', '01900000-0000-8847-b302-3e1446a3efa6'])
})
handlers.run()

const calls = suite('svc:call')
calls('runs the function by its reference', () => {
  assert.equal(targets('svc:call', { fn: 'orders/onCreated', args: [] }), [
    ['shop', 'orders/onCreated', 'call'],
  ])
})
calls('in the first project that has it, or in the one that is named', () => {
  assert.equal(targets('svc:call', { fn: 'math/add' }), [['shop', 'math/add', 'call']])
  assert.equal(targets('svc:call', { fn: 'math/add', project: 'store' }), [['store', 'math/add', 'call']])
  assert.equal(targets('svc:call', { fn: 'math/add', project: STORE }), [['store', 'math/add', 'call']])
})
calls('of a missing function starts nothing', () => {
  for (const data of [
    { fn: 'math/none' },
    { fn: 'add' },
    { fn: '' },
    {},
    null,
    7,
    'math/add',
    [],
    { fn: { ns: 'math' } },
  ]) {
    assert.equal(targets('svc:call', data), [], JSON.stringify(data))
  }
})
calls('in a project that is not there starts nothing, rather than in another one', () => {
  for (const project of ['none', 'theirs', '', null, 7])
    assert.equal(targets('svc:call', { fn: 'math/add', project }), [])
})
calls("of another environment's function starts nothing (I7)", () => {
  assert.equal(targets('svc:call', { fn: 'secret/fn' }), [])
  assert.equal(targets('svc:call', { fn: 'secret/fn', project: 'theirs' }), [])
})
calls.run()

const cancels = suite('svc:cancel')
cancels('names the run', () =>
  assert.equal(dispatched('svc:cancel', { run_id: 'r' }), { kind: 'cancel', run_id: 'r' }),
)
cancels.run()

const replays = suite('svc:replay')
const replayed = {
  run_id: 'old',
  run_type: 'event',
  project_id: SHOP,
  fn: 'orders/onCreated',
  build_id: 'b0',
  input_at: { stream_id: 'past', revision: 2 },
} as RunDoc
replays('runs the function as it is deployed now, with the old input', () => {
  const [plan] = plansOf('svc:replay', { run_id: 'old' }, { replayed }) ?? []
  assert.is(plan?.build_id, 'b1')
  assert.is(plan?.run_type, 'event')
  assert.is(plan?.replay_of, 'old')
  assert.is(plan?.stream_id, 's')
  assert.equal(plan?.input_at, { stream_id: 'past', revision: 2 })
})
replays('of an unknown run, of evaluated code, or of a function that is gone starts nothing', () => {
  for (const run of [
    null,
    { ...replayed, fn: null },
    { ...replayed, input_at: null },
    { ...replayed, fn: 'orders/gone' },
    { ...replayed, project_id: STORE },
  ]) {
    assert.equal(targets('svc:replay', { run_id: 'old' }, { replayed: run }), [])
  }
})
replays.run()
