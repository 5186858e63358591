import { clock } from '../clock.ts'
import type { Aggregates } from '../domain/aggregates.ts'
import { variableValue } from '../secrets/contextVariables.ts'
import { AppError } from '../errors.ts'
import type { RunPlan } from '../events/run.ts'
import { streamOf } from '../events/streams.ts'
import { derivedIdBeside, newId } from '../ids.ts'
import type { Payloads } from '../content/payloads.ts'
import type { EventStore } from '../ports/eventStore.ts'
import type { Directory } from '../projections/directory.ts'
import { endingOf } from '../projections/outcome.ts'
import type { Quotas } from '../plans/quotas.ts'
import { CALL, CANCEL, placeOf } from '../commands/dispatch.ts'
import type { Keyring } from '../secrets/keyring.ts'
import { type FileCallDeps, serveFileCall } from './serveFileCall.ts'
import type { HostCall } from '../ports/runtime.ts'

interface Deps extends FileCallDeps {
  readonly store: EventStore
  readonly aggregates: Pick<Aggregates, 'streams' | 'contexts'>
  readonly directory: Directory
  readonly payloads: Payloads
  readonly keyring: Keyring
  readonly quotas: Pick<Quotas, 'checkCall'>
}

/** Serves what a running function asks for through the SDK (DESIGN.md, A build). */
export const serveHostCall = async (
  deps: Deps,
  {
    plan,
    env_id,
    correlation_id,
    signal,
  }: { plan: RunPlan; env_id: string; correlation_id: string; signal: AbortSignal },
  call: HostCall,
): Promise<unknown> => {
  const { run_id, stream_id } = plan
  const { aggregates, payloads } = deps
  const cause = { env_id, correlation_id, causation_id: run_id }

  switch (call.op) {
    case 'emit':
      await aggregates.streams.handle(
        streamOf.stream(stream_id),
        { type: 'EmitData', run_id, data_type: call.data_type, payload: await payloads.keep(call.payload) },
        cause,
      )
      return null

    case 'send':
      return publish(deps, { stream_id, env_id, run_id, cause }, call.event_type, call.event_data)

    case 'call': {
      const { project, fn } = resolve(deps.directory, env_id, call.fn, plan.project_id)
      const data = { fn: call.fn, args: call.args, project: project.project_id }
      const { event_id } = await publish(deps, { stream_id, env_id, run_id, cause }, CALL, data)
      return { event_id, run_id: derivedIdBeside(event_id, project.project_id, fn.ns, fn.var) }
    }

    case 'run': {
      await deps.quotas.checkCall(env_id)
      const child: RunPlan = {
        run_id: newId(),
        stream_id,
        run_type: 'run',
        ...placeOf(resolve(deps.directory, env_id, call.fn, plan.project_id)),
        attempt: 1,
        parent_run_id: run_id,
      }
      const input = await payloads.keep(call.args)
      const { firstRevision } = await aggregates.streams.handle(
        streamOf.stream(stream_id),
        {
          type: 'RequestRun',
          env_id,
          plan: child,
          input: { kind: 'args', ...(input.ref ? { value_ref: input.ref } : { value: input.value }) },
          create: false,
        },
        cause,
      )
      const ending = await endingOf(deps.store, child.run_id, {
        stream: streamOf.stream(stream_id),
        after: firstRevision,
        signal,
      })
      if (ending?.type === 'RunSucceeded') {
        return payloads.load({ value: ending.result, ...(ending.result_ref && { ref: ending.result_ref }) })
      }
      if (ending?.type === 'RunFailed') throw new AppError('internal_server_error', ending.error.message)
      throw new AppError('conflict', `Run ${child.run_id} of ${call.fn} was cancelled`)
    }

    case 'context':
      return variableValue(deps, { env_id, project_id: plan.project_id }, call.key)

    case 'files':
      return serveFileCall(deps, { env_id, run_id, cause }, call)

    default:
      return call satisfies never
  }
}

const resolve = (directory: Directory, env_id: string, ref: string, project_id: string) => {
  const found = directory.functionAt(env_id, ref, project_id) ?? directory.functionAt(env_id, ref)
  if (!found)
    throw new AppError('not_found', `No function "${ref}" in the deployed builds (expected "ns/var")`)
  return found
}

const publish = async (
  { aggregates, payloads, quotas }: Deps,
  {
    stream_id,
    env_id,
    run_id,
    cause,
  }: {
    stream_id: string
    env_id: string
    run_id: string
    cause: Parameters<Aggregates['streams']['handle']>[2]
  },
  event_type: string,
  event_data: unknown,
): Promise<{ event_id: string; stream_id: string }> => {
  if (event_type !== CANCEL) await quotas.checkCall(env_id)
  const event_id = newId()
  await aggregates.streams.handle(
    streamOf.stream(stream_id),
    {
      type: 'PublishEvent',
      stream_id,
      env_id,
      event_id,
      event_type,
      data: await payloads.keep(event_data),
      source: `run:${run_id}`,
      create: false,
      now: clock.iso(),
    },
    cause,
  )
  return { event_id, stream_id }
}
