import * as assert from 'uvu/assert'
import { createProject } from '../../../src/commands/projects/createProject.ts'
import { deleteProject } from '../../../src/commands/projects/deleteProject.ts'
import { evaluate } from '../../../src/commands/runs/evaluate.ts'
import { BEYOND_TIMEOUT_MS } from '../../../src/commands/runs/requestRun.ts'
import { AppError } from '../../../src/errors.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { derivedIdBeside, type NewId, newId } from '../../../src/ids.ts'
import { suite } from '../../support/suite.ts'
import { until } from '../../support/until.ts'
import { openWorker } from '../../worker/openWorker.ts'
import { issuerOf } from '../issuerOf.ts'
import { openCommands } from '../openCommands.ts'
import { plantBuild, plantEnv } from '../plantEnv.ts'
import { refusedWith } from '../refusedWith.ts'

const node = await openCommands()
const env = await plantEnv(node, 'acme')
const { worker, held, invocations } = openWorker(node, { alone: true })
const deps = { ...node.deps, claimer: worker }
const deployed = await plantBuild(node, env, { name: 'shop' })
const input = { project: 'shop', code: '1 + 1', timeoutMs: 60_000, credential: issuerOf(env.env_id) }

/** Evaluates while the run ends as given. */
const ending = async (outcome: Parameters<(typeof held)[number]>[0], more: object = {}) => {
  const before = held.length
  const evaluating = evaluate(deps, { ...input, ...more }, env.caller)
  evaluating.catch(() => {})
  await until(() => held.length > before)
  held.at(-1)?.(outcome)
  return { run: await evaluating, invocation: invocations.at(-1) }
}
const succeeded = (result: unknown) => ({ status: 'succeeded', result }) as const

const evaluation = suite('an evaluation')
evaluation.after(async () => {
  await worker.stop({ drainMs: 10 })
  await node.close()
})

evaluation('returns the run of type eval that it became, with its result', async () => {
  const { run } = await ending(succeeded(2))
  assert.equal(
    [run.run_type, run.status, run.result, run.project_name, run.fn],
    ['eval', 'succeeded', 2, 'shop', null],
  )
})

evaluation('that fails returns the failed run', async () => {
  const error = { code: 'function_failed', message: 'x is not defined' }
  const { run } = await ending({ status: 'failed', error })
  assert.equal([run.status, run.error], ['failed', error])
})

evaluation('with a repl_id is a run of type repl that shares its declarations', async () => {
  const { run, invocation } = await ending(succeeded(null), { repl_id: 'mine' })
  assert.is(run.run_type, 'repl')
  assert.equal(invocation?.target, { code: '1 + 1', repl_id: 'mine' })
})

evaluation('may take as long as its caller allows', async () => {
  const { invocation } = await ending(succeeded(null), { timeoutMs: 12_345 })
  assert.is(invocation?.timeoutMs, 12_345)
})

evaluation('runs beside the live build of the project where it has one', async () => {
  const before = await ending(succeeded(null))
  assert.is(before.run.build_id, deployed.build_id)
  const live = await plantBuild(node, env, {
    name: 'shop',
    build_type: 'live',
    project_id: deployed.project_id,
  })
  const after = await ending(succeeded(null))
  assert.is(after.run.build_id, live.build_id)
})

evaluation('needs a project of the environment (I7)', async () => {
  const other = await plantEnv(node, 'other')
  const elsewhere = await refusedWith('not_found', () => evaluate(deps, input, other.caller))
  const none = await refusedWith('not_found', () => evaluate(deps, { ...input, project: 'none' }, env.caller))
  assert.is(elsewhere.message, none.message.replace('none', 'shop'))
})

evaluation('needs a live or deployed build', async () => {
  await createProject(deps, { name: 'empty' }, env.caller)
  const { message } = await refusedWith('not_found', () =>
    evaluate(deps, { ...input, project: 'empty' }, env.caller),
  )
  assert.match(message, 'no live or deployed build')
})

evaluation('over the quota is refused, and nothing is stored', async () => {
  const quotas = { checkRun: () => Promise.reject(new AppError('quota_exceeded', 'full')) }
  const before = await node.store.head()
  await refusedWith('quota_exceeded', () => evaluate({ ...deps, quotas }, input, env.caller))
  assert.is(await node.store.head(), before)
})

/** Its caller waits no longer. */
const timeoutMs = -BEYOND_TIMEOUT_MS

const statusOf = (stream_id: string, run_id: string) =>
  node.aggregates.streams.read(streamOf.stream(stream_id), ({ runs }) => runs.get(run_id)?.status)

/** Ids of a request, which remain known. */
const idsOf = (newId: NewId) => {
  const [run_id, stream_id] = [newId('run'), newId('stream')]
  return { run_id, stream_id, newId: (what: string) => (what === 'run' ? run_id : stream_id) }
}

evaluation('that no worker began in time is refused and does not run later', async () => {
  const { run_id, stream_id, newId: ids } = idsOf(newId)
  const caller = { ...env.caller, newId: ids }
  const { message } = await refusedWith('unavailable', () =>
    evaluate({ ...deps, claimer: null }, { ...input, timeoutMs }, caller),
  )
  assert.match(message, 'send the request again')
  assert.is(await statusOf(stream_id, run_id), undefined)
})

evaluation('with a key that no worker began in time remains for the repetition', async () => {
  const claim = newId()
  const { run_id, stream_id, newId: ids } = idsOf((what) => derivedIdBeside(claim, what))
  const caller = { ...env.caller, newId: ids }
  const alone = { ...deps, claimer: null }
  await refusedWith('unavailable', () => evaluate(alone, { ...input, timeoutMs }, caller))
  assert.is(await statusOf(stream_id, run_id), 'requested')
})

evaluation(
  'with a key that is sent again gets its run, although the plan is full and the project deleted',
  async () => {
    const claim = newId()
    const caller = { ...env.caller, newId: (what: string) => derivedIdBeside(claim, what) }
    const { project_id } = await plantBuild(node, env, { name: 'gone' })
    const before = held.length
    const first = evaluate(deps, { ...input, project: 'gone' }, caller)
    await until(() => held.length > before)
    const quotas = { checkRun: () => Promise.reject(new AppError('quota_exceeded', 'full')) }
    const again = evaluate({ ...deps, quotas }, { ...input, project: 'gone' }, caller)
    held.at(-1)?.(succeeded(2))
    const { run_id } = await first
    assert.is((await again).run_id, run_id)
    await deleteProject(node.deps, { project: project_id }, env.caller)
    assert.is((await evaluate(deps, { ...input, project: 'gone' }, caller)).run_id, run_id)
    const other = { ...caller, cause: { ...caller.cause, env_id: newId() } }
    await refusedWith('not_found', () => evaluate(deps, { ...input, project: 'gone' }, other))
  },
)

evaluation.run()
