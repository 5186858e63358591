import { readFact } from '../commands/streams/readFact.ts'
import { AppError, isAppError } from '../errors.ts'
import { envIdOf, isOf, type Recorded } from '../events/event.ts'
import type { EventOf } from '../events/index.ts'
import { payloadOf } from '../events/payload.ts'
import type { RunPlan } from '../events/run.ts'
import { streamOf } from '../events/streams.ts'
import type { Payloads } from '../content/payloads.ts'
import type { EventStore } from '../ports/eventStore.ts'
import type { Keyring } from '../secrets/keyring.ts'
import { CALL } from '../events/eventType.ts'
import type { Input, WebhookRequest } from '../ports/runtime.ts'
import type { KeptPayloads } from './keptPayloads.ts'
import { unsealRequest } from '../secrets/webhookMasking.ts'

export interface InputDeps {
  readonly store: EventStore
  readonly payloads: Payloads
  readonly keyring: Keyring
}

/** The input was removed with the day on which it was stored, or with its environment, so the run can never begin. */
export class ExpiredInput extends AppError {
  constructor(message = 'The retention period of the input has ended', cause?: unknown) {
    super('not_found', message, { cause })
  }
}

/**
 * Returns the input of a run from the given fact, if there is one, or from the fact that its plan references. A retry and a replay
 * reference the input of the first run. Rejects with `ExpiredInput`, or with `unavailable` while a large value is missing or damaged
 * in the blobs. Values that the process of the run fetches are looked for here, because a run that has begun does not wait for them.
 */
export const inputOf = async (
  plan: RunPlan,
  inHand: Recorded | null,
  deps: InputDeps,
  kept: KeptPayloads,
): Promise<Input> => {
  try {
    return await storedInput(plan, inHand, deps, kept)
  } catch (error) {
    throw isAppError(error, 'not_found') ? new ExpiredInput(error.message, error) : error
  }
}

const storedInput = async (
  plan: RunPlan,
  inHand: Recorded | null,
  { store, payloads, keyring }: InputDeps,
  kept: KeptPayloads,
): Promise<Input> => {
  const at = plan.input_at
  const isInHand =
    !at || (inHand?.revision === at.revision && inHand.stream === streamOf.stream(at.stream_id))
  const carrier = isInHand ? inHand : await readFact(store, streamOf.stream(at.stream_id), at.revision)
  if (!carrier && at) throw new ExpiredInput()
  if (!carrier) throw new AppError('internal_server_error', 'Expected a fact with an input, got none')
  if (isOf(carrier, 'EventPublished')) return ofEvent(carrier, plan, kept)
  if (isOf(carrier, 'RunRequested')) return ofRequest(carrier, { payloads, keyring }, kept)
  throw new AppError('internal_server_error', `Expected a fact with an input, got ${carrier.event.type}`)
}

const ofEvent = async (
  { event }: Recorded<EventOf<'EventPublished'>>,
  plan: RunPlan,
  kept: KeptPayloads,
): Promise<Input> => {
  const { value: data = null, ref } = payloadOf('event_data', event)
  const large = ref && { kept: await kept.addInput(ref) }
  if (event.event_type === CALL && plan.run_type === 'call') {
    const args = (data as { args?: unknown } | null)?.args
    return { kind: 'args', args: Array.isArray(args) ? args : [], ...large }
  }
  const { event_type: type, event_id: id, event_time: timestamp, source } = event
  return { kind: 'event', event: { type, data, id, timestamp, source }, ...large }
}

const ofRequest = async (
  requested: Recorded<EventOf<'RunRequested'>>,
  { payloads, keyring }: Pick<InputDeps, 'payloads' | 'keyring'>,
  kept: KeptPayloads,
): Promise<Input> => {
  const { event, at } = requested
  const { input } = event
  if (!input) return { kind: 'args', args: [] }
  if (input.kind === 'args' && input.value_ref)
    return { kind: 'args', args: [], kept: await kept.addInput(input.value_ref) }
  const value = await payloads.load(payloadOf('value', input))
  switch (input.kind) {
    case 'args':
      return { kind: 'args', args: Array.isArray(value) ? value : [] }
    case 'webhook':
      return {
        kind: 'webhook',
        request: await unsealRequest(value as WebhookRequest, input.sealed, {
          keyring,
          env_id: envIdOf(requested),
        }),
        ...(input.body_ref && { kept: await kept.addInput(input.body_ref) }),
      }
    case 'tick':
      return {
        kind: 'event',
        event: { type: 'svc:schedule', data: value, id: event.run_id, timestamp: at, source: 'schedule' },
      }
    default:
      return input.kind satisfies never
  }
}
