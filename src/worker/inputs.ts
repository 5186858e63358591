import { AppError } from '../errors.ts'
import type { Recorded } from '../events/event.ts'
import type { EventOf } from '../events/index.ts'
import { payloadOf } from '../events/payload.ts'
import type { RunPlan } from '../events/run.ts'
import { streamOf } from '../events/streams.ts'
import type { Payloads } from '../content/payloads.ts'
import type { EventStore } from '../ports/eventStore.ts'
import type { Keyring } from '../secrets/keyring.ts'
import { CALL } from '../commands/controlEvents.ts'
import type { Input, WebhookRequest } from '../ports/runtime.ts'
import { unsealRequest } from '../secrets/webhookRequests.ts'

export interface InputDeps {
  readonly store: EventStore
  readonly payloads: Payloads
  readonly keyring: Keyring
}

type Carrier = Recorded<EventOf<'EventPublished' | 'RunRequested'>>

/**
 * What a run's function is called with, taken from the fact that carries its input: the one in hand, or
 * the one its plan points to (a retry and a replay point back to the first run's).
 */
export const inputOf = async (
  plan: RunPlan,
  inHand: Recorded,
  { store, payloads, keyring }: InputDeps,
): Promise<Input> => {
  const at = plan.input_at
  const isInHand = !at || (inHand.revision === at.revision && inHand.stream === streamOf.stream(at.stream_id))
  const carrier = isInHand ? inHand : await factAt(store, at)
  if (carrier.event.type === 'EventPublished')
    return ofEvent(carrier as Recorded<EventOf<'EventPublished'>>, plan, payloads)
  if (carrier.event.type === 'RunRequested')
    return ofRequest(carrier as Recorded<EventOf<'RunRequested'>>, { payloads, keyring })
  throw new AppError('internal_server_error', `A ${carrier.event.type} carries no input`)
}

const factAt = async (store: EventStore, at: NonNullable<RunPlan['input_at']>): Promise<Carrier> => {
  for await (const recorded of store.read(streamOf.stream(at.stream_id), { from: at.revision, limit: 1 })) {
    return recorded as Carrier
  }
  throw new AppError('not_found', 'The input of this run is no longer kept')
}

const ofEvent = async (
  { event }: Recorded<EventOf<'EventPublished'>>,
  plan: RunPlan,
  payloads: Payloads,
): Promise<Input> => {
  const data = await payloads.load(payloadOf('event_data', event))
  if (event.event_type === CALL && plan.run_type === 'call') {
    const args = (data as { args?: unknown } | null)?.args
    return { kind: 'args', args: Array.isArray(args) ? args : [] }
  }
  const { event_type: type, event_id: id, event_time: timestamp, source } = event
  return { kind: 'event', event: { type, data, id, timestamp, source } }
}

const ofRequest = async (
  { event, at, metadata }: Recorded<EventOf<'RunRequested'>>,
  { payloads, keyring }: Pick<InputDeps, 'payloads' | 'keyring'>,
): Promise<Input> => {
  const { input } = event
  if (!input) return { kind: 'args', args: [] }
  const value = await payloads.load(payloadOf('value', input))
  switch (input.kind) {
    case 'args':
      return { kind: 'args', args: Array.isArray(value) ? value : [] }
    case 'webhook':
      return {
        kind: 'webhook',
        request: await unsealRequest(value as WebhookRequest, input.sealed, {
          keyring,
          env_id: metadata.env_id ?? '',
        }),
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
