import * as assert from 'uvu/assert'
import { isCounted, planSearch, type RunFilter } from '../../../src/commands/runs/runFilter.ts'
import { refuseUndeclared } from '../../../src/adapters/shared/declared.ts'
import { runs } from '../../../src/projections/runs.ts'
import { suite } from '../../support/suite.ts'

const env = { env_id: 'env' }
const ALL: Required<RunFilter> = {
  ...env,
  status: 'failed',
  run_type: 'event',
  project_id: 'p',
  fn: 'a/b',
  stream_id: 's',
  event_id: 'e',
  error_code: 'timeout',
  final: true,
  text: 'x',
}
const optional = Object.keys(ALL).filter((field) => field !== 'env_id')

/** Every subset of the filters. */
const subsets = Array.from({ length: 1 << optional.length }, (_, bits) => ({
  ...env,
  ...Object.fromEntries(
    optional.filter((_, at) => (bits >> at) & 1).map((field) => [field, ALL[field as keyof RunFilter]]),
  ),
})) as RunFilter[]

const plan = suite('the plan of a search of runs')

plan('reads along a declared index for every combination of filters', () => {
  for (const filter of subsets) {
    const { path } = planSearch(filter)
    refuseUndeclared(runs, { ...path, limit: 1, offset: 0 }) // it throws if there is none
  }
})

plan('checks every filter that its index does not decide', () => {
  for (const filter of subsets) {
    const { path, matches } = planSearch(filter)
    const open = Object.keys(filter).filter((field) => field !== 'env_id' && !(field in path.equal))
    assert.is(matches !== null, open.length > 0, JSON.stringify(filter))
  }
})

plan('of status and type alone has a stored total', () => {
  for (const filter of [env, { ...env, status: 'failed' }, { ...env, run_type: 'call' }] as const)
    assert.ok(isCounted(filter))
  assert.not(isCounted({ ...env, fn: 'a/b' }))
  assert.not(isCounted({ ...env, final: true }))
})

for (const [what, filter, fields] of [
  ['an event before its function', { event_id: 'e', fn: 'a/b' }, ['event_id']],
  ['an error before a status', { error_code: 'x', status: 'failed' }, ['env_id', 'error_code']],
  ['a rare status before a function', { status: 'failed', fn: 'a/b' }, ['env_id', 'status']],
  ['a function before success', { status: 'succeeded', fn: 'a/b' }, ['env_id', 'fn']],
  ['a function before its project', { project_id: 'p', fn: 'a/b' }, ['env_id', 'fn']],
] as const)
  plan(`looks for ${what}`, () =>
    assert.equal(Object.keys(planSearch({ ...env, ...filter }).path.equal), fields),
  )

plan('of what may belong to another environment checks it', () => {
  for (const filter of [{ event_id: 'e' }, { stream_id: 's' }, { project_id: 'p' }])
    assert.ok(planSearch({ ...env, ...filter }).mayBeForeign)
  assert.not(planSearch({ ...env, fn: 'a/b' }).mayBeForeign)
})

plan.run()
