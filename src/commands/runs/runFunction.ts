import { roomAfter } from '../../content/fileQuota.ts'
import { AppError } from '../../errors.ts'
import { FailedRun } from '../../events/failedRun.ts'
import { type Payload, payloadFields, payloadOf } from '../../events/payload.ts'
import type { RunPlan } from '../../events/run.ts'
import { streamOf } from '../../events/streams.ts'
import type { ChildEndings } from './childEndings.ts'
import type { HostCall } from '../../ports/runtime.ts'
import type { Caller, CommandDeps } from '../deps.ts'
import { demandRunning } from './demandRunning.ts'
import { type Admit, functionFor } from './functionFor.ts'
import { placeOf } from '../events/planRuns.ts'

/** The arguments that a function gives to another; a large list remains text. */
export type RunArguments = Extract<HostCall, { op: 'run' }>['args']

type Deps = Pick<CommandDeps, 'store' | 'aggregates' | 'views' | 'payloads' | 'quotas'>

/** A child run that was requested. */
export interface RequestedChild {
  readonly run_id: string
  readonly stream_id: string
  readonly ref: string
  /** The revision of the request in the stream. */
  readonly after: number
}

/**
 * Requests a function as a child of a run (SDK `run`; DESIGN.md, A build). Rejects with `not_found` or
 * `quota_exceeded`, or as `admit` does.
 */
export const requestChild = async (
  deps: Deps,
  {
    ref,
    args,
    parent,
    depth,
    admit,
  }: { ref: string; args: RunArguments; parent: RunPlan; depth: number; admit?: Admit | undefined },
  { cause, newId }: Caller,
): Promise<RequestedChild> => {
  const { aggregates, payloads, views, quotas } = deps
  const { env_id } = cause
  const { run_id: parent_run_id, stream_id, project_id } = parent
  await quotas.checkRun(env_id)
  const child: RunPlan = {
    run_id: newId('run'),
    stream_id,
    run_type: 'run',
    ...placeOf(functionFor(views.directory, env_id, ref, project_id, admit)),
    attempt: 1,
    depth,
    parent_run_id,
    ...(cause.traceparent !== undefined && { traceparent: cause.traceparent }),
  }
  const room = quotas.dataFor(env_id)
  const checked = roomAfter(() => demandRunning(deps, parent), room)
  const request = async () => {
    const input = await payloads.keep(args, cause, checked)
    return aggregates.streams.handle(
      streamOf.stream(stream_id),
      {
        type: 'RequestRun',
        env_id,
        plan: child,
        input: { kind: 'args', ...payloadFields('value', input) },
        create: false,
      },
      cause,
    )
  }
  const { firstRevision } = await request().finally(() => room.release())
  return { run_id: child.run_id, stream_id, ref, after: firstRevision }
}

/**
 * Resolves with the result of a child run. Rejects with `FailedRun` with the error of its last attempt, or with `conflict`
 * when it was cancelled.
 */
export const resultOfChild = async (
  endings: Pick<ChildEndings, 'of'>,
  { ref, ...requested }: RequestedChild,
  signal: AbortSignal,
): Promise<Payload> => {
  const { run_id } = requested
  const ending = await endings.of(requested, signal)
  if (ending?.type === 'RunSucceeded') return payloadOf('result', ending)
  if (ending?.type === 'RunFailed') throw new FailedRun(ending.run_id, ending.error)
  throw new AppError('conflict', `Run ${run_id} of ${ref} was cancelled`)
}
