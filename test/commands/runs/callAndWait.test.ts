import * as assert from 'uvu/assert'
import { runIdOf } from '../../../src/commands/events/planRuns.ts'
import { removeProject } from '../../../src/commands/projects/removeProject.ts'
import { callAndWait } from '../../../src/commands/runs/callAndWait.ts'
import { cancelRun } from '../../../src/commands/runs/cancelRun.ts'
import type { AppError } from '../../../src/errors.ts'
import { isOf } from '../../../src/events/event.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { newId } from '../../../src/ids.ts'
import { dispatchEvent } from '../../support/dispatchEvent.ts'
import { suite } from '../../support/suite.ts'
import { openCommands } from '../openCommands.ts'
import { plantBuild, plantEnv } from '../plantEnv.ts'

const node = await openCommands()
const { deps, views } = node

/** A call that waits for its run, which no worker has begun. */
const waitingCall = async () => {
  const env = await plantEnv(node, `acme-${newId().slice(-8)}`)
  const { project_id } = await plantBuild(node, env, {
    name: 'shop',
    functions: [{ ns: 'math', var: 'add' }],
  })
  const deployed = views.directory.functionAt(env.env_id, 'math/add', project_id)
  assert.ok(deployed)
  const [stream_id, event_id] = [newId(), newId()]
  const ids: Record<string, string> = { stream: stream_id, event: event_id }
  const stored = Promise.withResolvers<void>()
  const called = callAndWait(
    deps,
    { project: project_id, ref: 'math/add', args: [1, 2] },
    { cause: env.caller.cause, newId: (what) => ids[what ?? ''] ?? newId() },
    { waitMs: 3600_000, gone: new AbortController().signal, onStored: () => stored.resolve() },
  )
  await Promise.race([stored.promise, called])
  const facts = await Array.fromAsync(node.store.read(streamOf.stream(stream_id)))
  const published = facts.find((fact) => isOf(fact, 'EventPublished'))
  assert.ok(published)
  return { called, published, project_id, run_id: runIdOf(event_id, deployed), ...env }
}

const waiting = suite('a call that waits for a run that never begins')

waiting('ends when it is cancelled', async () => {
  const { called, run_id, caller } = await waitingCall()
  await cancelRun(deps, run_id, caller.cause)
  const { ending, ...ids } = await called
  assert.is(ids.run_id, run_id)
  assert.is(ending?.type === 'EventHandled' && ending.error?.code, 'cancelled')
})

waiting('ends when its function is not deployed any more', async () => {
  const { called, published, run_id, project_id, caller } = await waitingCall()
  const refused = called.then(String, ({ code, message }: AppError) => ({ code, message }))
  const project = await views.projects.get(project_id)
  assert.ok(project)
  await removeProject({ ...deps, runtime: null }, project, caller.cause)
  assert.equal(await dispatchEvent(deps, { published, worker_id: 'w' }), [])
  const message = `Run ${run_id} did not begin: its function is not deployed any more`
  assert.equal(await refused, { code: 'not_found', message })
})

waiting('continues when its run begins and is cancelled then', async () => {
  const { called, published, run_id, caller } = await waitingCall()
  assert.is((await dispatchEvent(deps, { published, worker_id: 'w' }))?.length, 1)
  await cancelRun(deps, run_id, caller.cause)
  assert.is((await called).ending?.type, 'RunCancelled')
})

waiting.run()
