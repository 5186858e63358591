import { callFunction } from '../commands/runs/callFunction.ts'
import type { CommandDeps } from '../commands/deps.ts'
import { emitData } from '../commands/streams/emitData.ts'
import { publishEvent } from '../commands/events/publishEvent.ts'
import { readVariable } from '../commands/context/readVariable.ts'
import { depthBelow } from '../commands/runs/runDepth.ts'
import { runFunction } from '../commands/runs/runFunction.ts'
import type { RunPlan } from '../events/run.ts'
import type { Taking, Turns } from '../plans/functionRates.ts'
import { newId } from '../ids.ts'
import type { HostCall } from '../ports/runtime.ts'
import { serveFileCall } from './serveFileCall.ts'

/** The dependencies of the commands that host calls use. */
export type HostCallDeps = Pick<
  CommandDeps,
  'store' | 'aggregates' | 'views' | 'blobs' | 'payloads' | 'keyring' | 'quotas'
> & {
  /** The depth of runs from which on `send`, `call` and `run` are refused. */
  readonly maxRunDepth: number
}

/** Serves a call that a running function makes through the SDK (DESIGN.md, A build). */
export const serveHostCall = async (
  deps: HostCallDeps,
  {
    plan,
    env_id,
    correlation_id,
    signal,
    turns,
  }: {
    plan: RunPlan
    env_id: string
    correlation_id: string
    signal: AbortSignal
    /** The rate of the organization; null: unlimited. */
    turns: Turns | null
  },
  call: HostCall,
): Promise<unknown> => {
  const { run_id, stream_id, project_id } = plan
  const cause = { env_id, correlation_id, causation_id: run_id }
  const caller = { cause, newId }
  const from = () => ({ stream_id, source: `run:${run_id}`, depth: depthBelow(plan, deps.maxRunDepth) })
  const taking = takingOf(call)
  if (turns && taking) await turns.take(taking)

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
      const { event } = await publishEvent(deps, { ...from(), event_type, event_data }, caller)
      return { event_id: event.event_id, stream_id }
    }
    case 'call':
      return callFunction(deps, { ...from(), ref: call.fn, args: call.args, project_id }, caller)
    case 'run':
      return runFunction(
        deps,
        {
          ref: call.fn,
          args: call.args,
          parent: plan,
          depth: depthBelow(plan, deps.maxRunDepth),
          signal,
        },
        caller,
      )
    case 'context':
      return readVariable(deps, { env_id, project_id, key: call.key })
    case 'files':
      return serveFileCall(deps, { run_id, caller }, call)
    default:
      return call satisfies never
  }
}

const takingOf = ({ op }: HostCall): Taking | null => {
  if (op === 'emit') return 'emit'
  return op === 'send' || op === 'call' || op === 'run' ? 'start' : null
}
