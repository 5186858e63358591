import * as assert from 'uvu/assert'
import { publishEvent } from '../../../src/commands/events/publishEvent.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { newId } from '../../../src/ids.ts'
import { now } from '../../support/openNode.ts'
import { suite } from '../../support/suite.ts'
import { callerOf, openCommands } from '../openCommands.ts'
import { refusedWith } from '../refusedWith.ts'

const node = await openCommands()
const env_id = newId()
const caller = callerOf(env_id)
const { cause } = caller
const { projects, streams } = node.aggregates

/** Creates a project. The result deploys a build of it that has these functions. */
const deploying = async (project_id: string) => {
  const at = streamOf.project(project_id)
  await projects.handle(at, { type: 'CreateProject', project_id, name: `shop-${project_id}` }, cause)
  let fence = 0
  return async (...names: string[]) => {
    const functions = names.map((name) => ({ ns: 'orders', var: name }))
    const build = { build_id: newId(), project_id, hash: 'a'.repeat(64), functions }
    const stored = { size: 1, build_type: 'release', storage_path: 'x', storage_backend: 'disk' } as const
    await projects.handle(at, { type: 'UploadBuild', build: { ...build, ...stored } }, cause)
    fence = (await projects.handle(at, { type: 'DeployBuild', build, fence }, cause)).firstRevision
    return build
  }
}

const runOf = async ({ build_id, project_id }: { build_id: string; project_id: string }): Promise<string> => {
  const [run_id, stream_id] = [newId(), newId()]
  const plan = {
    run_id,
    stream_id,
    run_type: 'call',
    attempt: 1,
    build_id,
    project_id,
    project_name: 'shop',
    target: { ns: 'orders', var: 'charge' },
    input_at: { stream_id, revision: 1 },
  } as const
  const claim = { worker_id: newId(), now }
  await streams.handle(
    streamOf.stream(stream_id),
    { type: 'RequestRun', env_id, plan, input: { kind: 'args', value: [] }, create: true, claim },
    cause,
  )
  return run_id
}

const replay = (run_id: string) =>
  publishEvent(node.deps, { event_type: 'svc:replay', event_data: { run_id }, source: 'api' }, caller)

const replays = suite('svc:replay of a run whose function is gone')

replays('is refused and stores nothing', async () => {
  const project_id = newId()
  const deploy = await deploying(project_id)
  const run_id = await runOf(await deploy('charge'))
  await replay(run_id)
  await deploy('refund')
  const without = await node.store.head()
  const { message } = await refusedWith('bad_request', () => replay(run_id))
  assert.match(message, 'the function orders/charge of the run is not in the deployed build of shop')
  assert.is(await node.store.head(), without)
  await projects.handle(streamOf.project(project_id), { type: 'DeleteProject', project_id }, cause)
  const gone = await node.store.head()
  const refused = await refusedWith('bad_request', () => replay(run_id))
  assert.is(refused.message, 'event_data.run_id: the project shop of the run was deleted')
  assert.is(await node.store.head(), gone)
})

replays.after(() => node.close())
replays.run()
