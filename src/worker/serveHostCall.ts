import { checkContextKey, demandDeclared } from '../events/contextKey.ts'
import { callFunction } from '../commands/runs/callFunction.ts'
import type { ChildEndings } from '../commands/runs/childEndings.ts'
import type { CommandDeps } from '../commands/deps.ts'
import type { Idempotency } from '../commands/idempotency.ts'
import { emitData } from '../commands/streams/emitData.ts'
import { publishEvent } from '../commands/events/publishEvent.ts'
import { readVariable } from '../commands/context/readVariable.ts'
import { depthBelow } from '../commands/runs/runDepth.ts'
import { type Admit, functionFor } from '../commands/runs/functionFor.ts'
import { requestChild, type RequestedChild, resultOfChild } from '../commands/runs/runFunction.ts'
import type { EnvCause } from '../events/event.ts'
import type { Payload } from '../events/payload.ts'
import type { RunPlan } from '../events/run.ts'
import type { Taking } from '../plans/functionRates.ts'
import { newId } from '../ids.ts'
import type { HostCall } from '../ports/runtime.ts'
import type { KeptPayloads } from './keptPayloads.ts'
import { admitOf, demandOf, pathsOf, type RunRights } from './runRights.ts'
import { serveFileCall } from './serveFileCall.ts'
import { startOnce } from './startOnce.ts'

/** The dependencies of the commands that host calls use. */
export type HostCallDeps = Pick<
  CommandDeps,
  'store' | 'aggregates' | 'views' | 'blobs' | 'payloads' | 'keyring' | 'quotas'
> & {
  readonly idempotency: Pick<Idempotency, 'once'>
  readonly childEndings: Pick<ChildEndings, 'of'>
  /** Absent or null when no collector of traces is configured. */
  readonly tracer?: CommandDeps['tracer']
  /** The depth of runs from which on `send`, `call` and `run` are refused. */
  readonly maxRunDepth: number
}

/** The run that makes a host call. */
export interface CallingRun {
  readonly kept: KeptPayloads
  readonly plan: RunPlan
  readonly env_id: string
  /** The run, or for evaluated code the credential that evaluates it. */
  readonly cause: EnvCause
  /** The trace context of the run, for what it starts; undefined if it is not traced. */
  readonly traceparent?: string | undefined
  readonly rights: RunRights
  readonly signal: AbortSignal
}

/**
 * Serves a call that a running function makes through the SDK (DESIGN.md, A build). Evaluated code needs the permission
 * of the HTTP endpoint with the same effect; `emit` has none, because it only writes to the run's own stream.
 * `onRequested` is called when a child run was requested: from then on, nothing here refers to the content of the call.
 */
export const serveHostCall = async (
  deps: HostCallDeps,
  calling: CallingRun,
  call: HostCall,
  onRequested: () => void,
): Promise<unknown> => {
  const { plan, kept, env_id, cause, traceparent, rights, signal } = calling
  const { run_id, stream_id, project_id } = plan
  const caller = { cause: traceparent === undefined ? cause : { ...cause, traceparent }, newId }
  const starting = { plan, cause: caller.cause, signal }
  const source = `run:${run_id}`
  /** Checks the function that has the reference, and returns the check: another one may have it at the start. */
  const admitStart = async (held: NonNullable<RunRights>, ref: string): Promise<Admit> => {
    const admit = await admitOf(held)
    functionFor(deps.views.directory, env_id, ref, project_id, admit)
    return admit
  }

  switch (call.op) {
    case 'emit': {
      const { data_type, payload } = call
      const checked = deps.quotas.checkData(env_id)
      if (checked) await checked
      await emitData(deps, { run_id, stream_id, data_type, payload }, cause)
      return null
    }
    case 'send': {
      const { event_type, event_data } = call
      if (rights) await demandOf(rights, 'event', ['create'], [event_type])
      return startOnce(deps, starting, call, async ({ newId, ...place }) => {
        const depth = depthBelow(plan, deps.maxRunDepth)
        const wanted = { ...place, source, depth, event_type, event_data }
        const { event } = await publishEvent(deps, wanted, { ...caller, newId })
        return { event_id: event.event_id, stream_id: event.stream_id }
      })
    }
    case 'call': {
      const admit = rights ? await admitStart(rights, call.fn) : undefined
      return startOnce(deps, starting, call, async ({ newId, ...place }) => {
        const depth = depthBelow(plan, deps.maxRunDepth)
        const wanted = { ...place, source, depth, ref: call.fn, args: call.args, project_id, admit }
        return callFunction(deps, wanted, { ...caller, newId })
      })
    }
    case 'run': {
      const admit = rights ? await admitStart(rights, call.fn) : undefined
      return requestChild(
        deps,
        { ref: call.fn, args: call.args, parent: plan, depth: depthBelow(plan, deps.maxRunDepth), admit },
        caller,
      ).then(resultAfter(deps, calling, onRequested))
    }
    case 'payload':
      return kept.read(call.handle, call.from)
    case 'context':
      await demandContext(plan, rights, call.key)
      return readVariable(deps, { env_id, project_id, key: call.key })
    case 'files':
      return serveFileCall(deps, { plan, caller, rights }, call)
    default:
      return call satisfies never
  }
}

/** What the call counts as against the rate of its organization; null: nothing. */
export const takingOf = ({ op }: HostCall): Taking | null => {
  if (op === 'emit') return 'emit'
  return op === 'send' || op === 'call' || op === 'run' ? 'start' : null
}

/** The keys that a function declares bind all of its runs, whatever its process says. */
const demandContext = async (plan: RunPlan, rights: RunRights, key: string): Promise<void> => {
  const { context, target, project_id, project_name } = plan
  checkContextKey(key)
  if (rights) await demandOf(rights, 'context', ['read'], pathsOf({ project_id, name: project_name }))
  demandDeclared(context, key, 'ns' in target ? `${target.ns}/${target.var}` : 'evaluated code')
}

/** A function of its own, because a closure refers to all that the closures beside it use: the content of the call. */
const resultAfter =
  (deps: HostCallDeps, { kept, signal }: CallingRun, onRequested: () => void) =>
  async (requested: RequestedChild): Promise<unknown> => {
    onRequested()
    return resultOf(await resultOfChild(deps.childEndings, requested, signal), kept)
  }

/** A large result is fetched in chunks. */
const resultOf = ({ value = null, ref }: Payload, kept: KeptPayloads): unknown =>
  ref ? kept.add(ref) : value
