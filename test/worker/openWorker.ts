import { ChildEndings } from '../../src/commands/runs/childEndings.ts'
import { credentialNow } from '../../src/access/storedCredential.ts'
import type { Evaluator, RunPlan } from '../../src/events/run.ts'
import type { FunctionSpec } from '../../src/events/project.ts'
import { streamOf } from '../../src/events/streams.ts'
import { newId } from '../../src/ids.ts'
import { FairTurns } from '../../src/loops/fairTurns.ts'
import { type Logger, silent } from '../../src/logger.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import type { Invocation, Outcome, Runtime } from '../../src/ports/runtime.ts'
import type { WantedRun } from '../../src/ports/claimer.ts'
import { Worker, type WorkerOptions } from '../../src/worker/worker.ts'
import { Keyring } from '../../src/secrets/keyring.ts'
import { noKeys } from '../support/noKeys.ts'
import { cause, type Node, now } from '../support/openNode.ts'

/**
 * Keeps every invocation in progress until it is cancelled or closed, like a function that never returns. With `begins`
 * false no child has room, so no code begins.
 */
const holdingRuntime = (begins: boolean) => {
  const held: ((outcome: Outcome) => void)[] = []
  const invocations: Invocation[] = []
  const lost = { code: 'worker_lost', message: 'closed' }
  const runtime: Runtime = {
    invoke: (invocation) =>
      new Promise((resolve, reject) => {
        const { signal } = invocation
        const error = { code: 'cancelled', message: 'The run was cancelled' }
        if (signal.aborted) return resolve({ status: 'failed', error })
        held.push(resolve)
        const loadInput = () => {
          const loaded = invocation.loadInput()
          loaded.catch(reject) // as a lane does
          return loaded
        }
        invocations.push({ ...invocation, loadInput })
        if (begins) invocation.onStart?.()
        signal.addEventListener('abort', () => resolve({ status: 'failed', error }))
      }),
    inspect: () => Promise.resolve({ ok: true, functions: [] }),
    forget: () => Promise.resolve(),
    forgetUnneeded: () => Promise.resolve({ removed: 0, left: 0 }),
    prewarm() {},
    isFullFor: () => false,
    children: 0,
    pool: { children: 0, busy: 0, maxChildren: 0, waitingRuns: 0, starts: 0, crashes: 0 },
    async close() {
      for (const settle of held) settle({ status: 'lost', error: lost })
    },
  }
  return { runtime, held, invocations }
}

/** A worker on the node's engines, and its invocations in progress. */
export const openWorker = (
  {
    aggregates,
    views,
    blobs,
    payloads,
    quotas,
    store,
    keyring = new Keyring(new Uint8Array(32)),
    logger = silent,
  }: Node & { readonly keyring?: Keyring; readonly logger?: Logger },
  { begins = true, ...options }: Partial<WorkerOptions> & { readonly begins?: boolean } = {},
  through: EventStore = store,
) => {
  const { runtime, held, invocations } = holdingRuntime(begins)
  const deps = {
    store: through,
    aggregates,
    views,
    payloads,
    blobs,
    keyring,
    quotas,
    idempotency: noKeys,
    childEndings: new ChildEndings(through),
    runtime,
    logger,
    maxRunDepth: 100,
    turns: new FairTurns(),
    functionRates: { turnsOf: () => null },
    credentialNow: (credential: Pick<Evaluator, 'kind' | 'id'>) => credentialNow(views, credential),
  }
  return {
    runtime,
    worker: new Worker(deps, { maxConcurrentRuns: 10, runTimeoutMs: 60_000, ...options }),
    held,
    invocations,
  }
}

/** Deploys a build of a project `shop` of an environment. */
export const deployBuild = async (
  { aggregates, views }: Node,
  env_id = cause.env_id,
  functions: FunctionSpec[] = [],
  hash = 'a'.repeat(64),
) => {
  const build = { build_id: newId(), project_id: newId(), hash, functions }
  const project = streamOf.project(build.project_id)
  await aggregates.projects.handle(
    project,
    { type: 'CreateProject', project_id: build.project_id, name: 'shop' },
    { ...cause, env_id },
  )
  const stored = { size: 1, storage_path: 'x', storage_backend: 'disk', build_type: 'release' } as const
  await aggregates.projects.handle(
    project,
    { type: 'UploadBuild', build: { ...build, ...stored } },
    { ...cause, env_id },
  )
  await aggregates.projects.handle(project, { type: 'DeployBuild', build, fence: 0 }, { ...cause, env_id })
  await views.settled()
  return build
}

/** A run of a function of the build, in its own stream. It may start again, unlike evaluated code. */
export const wantedCall = (build: { build_id: string; project_id: string }): WantedRun => {
  const run = wanted(build)
  return { ...run, plan: { ...run.plan, run_type: 'call', target: { ns: 'a', var: 'b' } } }
}

/** A requested run of evaluated code beside the build, in its own stream. */
export const wanted = (build: { build_id: string; project_id: string }): WantedRun => {
  const [run_id, stream_id] = [newId(), newId()]
  const plan: RunPlan = {
    run_id,
    stream_id,
    build_id: build.build_id,
    project_id: build.project_id,
    project_name: 'shop',
    target: { code: '1' },
    run_type: 'eval',
    attempt: 1,
    input_at: { stream_id, revision: 1 },
  }
  return { plan, input: { kind: 'args', value: [] }, cause, now }
}
