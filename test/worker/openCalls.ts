import { KeptPayloads } from '../../src/worker/keptPayloads.ts'
import * as assert from 'uvu/assert'
import { dispatchEvent } from '../support/dispatchEvent.ts'
import { publishEvent } from '../../src/commands/events/publishEvent.ts'
import { isOf, type Recorded } from '../../src/events/event.ts'
import type { EventOf, EventType } from '../../src/events/index.ts'
import type { RunPlan } from '../../src/events/run.ts'
import { streamOf } from '../../src/events/streams.ts'
import { ChildEndings } from '../../src/commands/runs/childEndings.ts'
import { Idempotency } from '../../src/commands/idempotency.ts'
import { newId } from '../../src/ids.ts'
import { silent } from '../../src/logger.ts'
import type { Blobs } from '../../src/ports/blobs.ts'
import type { HostCall } from '../../src/ports/runtime.ts'
import type { RunRights } from '../../src/worker/runRights.ts'
import { serveHostCall } from '../../src/worker/serveHostCall.ts'
import { openCommands } from '../commands/openCommands.ts'
import { plantBuild, plantEnv } from '../commands/plantEnv.ts'

/** An environment with the function `loop/again`, whose runs make host calls without a child. */
export const openCalls = async () => {
  const node = await openCommands()
  const { deps } = node
  const env = await plantEnv(node, 'acme')
  await plantBuild(node, env, { name: 'shop', functions: [{ ns: 'loop', var: 'again', on_event: 'again' }] })
  const worker_id = newId()

  const factsOf = async <Type extends EventType>(stream_id: string, type: Type) =>
    (await Array.fromAsync(node.store.read(streamOf.stream(stream_id)))).filter(
      (fact): fact is Recorded<EventOf<Type>> => isOf(fact, type),
    )

  /** Begins a run that a client began, at depth 0. */
  const begin = async (): Promise<RunPlan> => {
    const { event } = await publishEvent(
      deps,
      { event_type: 'again', event_data: null, source: 'api' },
      env.caller,
    )
    return dispatched(event.stream_id, event.event_id)
  }

  const dispatched = async (stream_id: string, event_id: string, maxRunDepth?: number): Promise<RunPlan> => {
    const published = (await factsOf(stream_id, 'EventPublished')).find(({ id }) => id === event_id)
    assert.ok(published)
    const [plan] =
      (await dispatchEvent(deps, {
        published,
        worker_id,
        ...(maxRunDepth !== undefined && { maxRunDepth }),
      })) ?? []
    assert.ok(plan, 'no run was planned')
    return plan
  }

  /** The keyed calls of a process. */
  const keysOf = (holder: string, isGone = (_: string) => false) =>
    new Idempotency({ ...deps, logger: silent, holder, isGone })
  const keys = keysOf(worker_id)

  const ask = (
    plan: RunPlan,
    call: HostCall,
    {
      maxRunDepth = 100,
      idempotency = keys,
      blobs = deps.blobs,
      rights = null,
    }: {
      maxRunDepth?: number
      idempotency?: Pick<Idempotency, 'once'>
      blobs?: Blobs
      rights?: RunRights
    } = {},
  ) =>
    serveHostCall(
      { ...deps, blobs, maxRunDepth, idempotency, childEndings: new ChildEndings(deps.store) },
      {
        kept: new KeptPayloads(node.payloads),
        plan,
        env_id: env.env_id,
        cause: { env_id: env.env_id, correlation_id: newId(), causation_id: plan.run_id },
        rights,
        signal: new AbortController().signal,
      },
      call,
      () => {},
    )

  return { node, env, worker_id, factsOf, begin, dispatched, ask, keysOf }
}

export const again = { op: 'send', event_type: 'again', event_data: null } as const
export const calls: Readonly<Record<string, HostCall>> = {
  send: again,
  call: { op: 'call', fn: 'loop/again', args: [] },
  run: { op: 'run', fn: 'loop/again', args: [] },
}
