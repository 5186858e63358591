import type { Credential } from '../../access/credential.ts'
import { AppError } from '../../errors.ts'
import type { EnvCause } from '../../events/event.ts'
import { isDerived } from '../../ids.ts'
import type { RunDoc } from '../../projections/runs.ts'
import type { Caller, CommandDeps } from '../deps.ts'
import { projectFor } from '../projects/projectFor.ts'
import { awaitRequested, orRequested, requestRun, type RunToRequest } from './requestRun.ts'
import { withdrawRun } from './withdrawRun.ts'

type Deps = Parameters<typeof requestRun>[0] &
  Pick<CommandDeps, 'views'> & { readonly quotas: Pick<CommandDeps['quotas'], 'checkRun'> }

interface Evaluation {
  readonly project: string
  readonly code: string
  readonly repl_id?: string | undefined
  readonly timeoutMs: number
  readonly credential: Pick<Credential, 'kind' | 'id' | 'granted'>
  /** Is called when the code is stored. The wait that follows does not keep it. */
  readonly onStored?: () => void
}

/**
 * Evaluates code with the live build of a project, or with the deployed one, and returns its run (SPEC.md, Builds).
 * The code may do what the credential may do. Evaluations of a credential with the same `repl_id` share declarations. Rejects with `not_found`, `quota_exceeded`, or
 * `unavailable` when no worker began in time; the code then does not run, unless a repetition with its key waits for it.
 */
export const evaluate = (deps: Deps, evaluation: Evaluation, caller: Caller): Promise<RunDoc> =>
  endOf(deps, request(deps, evaluation, caller), caller.cause)

/** An own function, because a function that waits keeps its arguments, and the code is not needed any more. */
const endOf = async (
  deps: Deps,
  ended: Promise<{ readonly run_id: string; readonly stream_id: string }>,
  cause: EnvCause,
): Promise<RunDoc> => {
  const ids = await ended
  const run = await begun(deps, ids)
  if (run) return run
  const isKeyed = isDerived(ids.run_id)
  if (!isKeyed && (await withdrawRun(deps, ids, cause)))
    throw new AppError(
      'unavailable',
      'No worker began the evaluation in time, and it does not run later: send the request again',
    )
  const late = isKeyed ? null : await begun(deps, ids)
  if (late) return late
  throw new AppError(
    'unavailable',
    'No worker began the evaluation in time: send the request again with its Idempotency-Key',
  )
}

/** Resolves with the run if a worker has claimed it. */
const begun = async (
  { views }: Pick<Deps, 'views'>,
  { run_id }: { readonly run_id: string },
): Promise<RunDoc | null> => {
  await views.settled('runs')
  return views.runs.get(run_id)
}

/** Resolves when the run has ended. */
const request = async (deps: Deps, evaluation: Evaluation, caller: Caller): ReturnType<typeof requestRun> => {
  const { timeoutMs: timeout, onStored } = evaluation
  const run = await orRequested(deps, planned(deps, evaluation, caller), caller)
  return run
    ? requestRun(deps, { run, input: { kind: 'args', value: [] }, ...(onStored && { onStored }) }, caller)
    : awaitRequested(deps, { timeout, onStored }, caller)
}

const planned = async (
  { views, quotas }: Pick<Deps, 'views' | 'quotas'>,
  { project: named, code, repl_id, timeoutMs, credential }: Evaluation,
  { cause: { env_id } }: Caller,
): Promise<RunToRequest> => {
  await views.settled('builds', 'projects')
  const project = projectFor(views.directory, env_id, named)
  const build = project.live ?? project.deployed
  if (!build)
    throw new AppError('not_found', 'The project has no live or deployed build to evaluate code with')
  await quotas.checkRun(env_id)
  return {
    run_type: repl_id === undefined ? 'eval' : 'repl',
    build_id: build.build_id,
    project_id: project.project_id,
    project_name: project.name,
    target: { code, ...(repl_id !== undefined && { repl_id }) },
    timeout: timeoutMs,
    evaluator: { kind: credential.kind, id: credential.id, permissions: [...credential.granted] },
  }
}
