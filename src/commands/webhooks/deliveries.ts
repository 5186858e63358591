import { clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { payloadOf } from '../../events/payload.ts'
import { streamOf } from '../../events/streams.ts'
import { isReply, mistakeInReply } from '../../events/webhookReply.ts'
import { derivedId, type NewId, newId } from '../../ids.ts'
import { awaitEnding, type Ending } from '../runs/awaitEnding.ts'
import { BEYOND_TIMEOUT_MS, REQUESTED_AT } from '../runs/requestRun.ts'
import type { CommandDeps } from '../deps.ts'
import type { WebhookEndpoint } from './findWebhook.ts'

/**
 * A delivery is recognized for this time at least, and for at most twice as long. Every plan keeps runs longer: the first
 * run of a delivery must not be removed while it is recognized.
 */
const WINDOW_MS = 3 * 24 * 60 * 60 * 1000
/** Failed attempts of one delivery that are looked up; providers send one at most 20 times. */
const MAX_ATTEMPTS = 64

type Deps = Pick<CommandDeps, 'store' | 'aggregates' | 'payloads' | 'stopping'>

/** What is known about a delivery: the run that accepted it, or the ids for its next run. */
export type KnownDelivery =
  | {
      readonly kind: 'accepted'
      readonly run_id: string
      readonly stream_id: string
      readonly ending: Ending
    }
  | { readonly kind: 'new'; readonly newId: NewId }

/**
 * Looks up a delivery by the id that its provider gave to it. The ids of its runs derive from that id, so deliveries that
 * arrive at once share a run (I3). A delivery whose run failed, or replied with an error, gets another run, because the
 * provider sends it again for that. Rejects with `unavailable` while an earlier run is in progress for too long.
 */
export const findDelivery = async (
  deps: Deps,
  { env, deployed, webhook }: Pick<WebhookEndpoint, 'env' | 'deployed' | 'webhook'>,
  { id, timeoutMs }: { id: string; timeoutMs: number },
): Promise<KnownDelivery> => {
  const { method, service, path } = webhook
  const address = [env.env_id, deployed.project.project_id, method, service, path] as const
  const now = Math.floor(clock.now() / WINDOW_MS)
  const newIdOf =
    (window: number, attempt: number): NewId =>
    (what) =>
      derivedId('delivery', ...address, id, window, attempt, what)
  const exists = (ids: NewId): Promise<boolean> =>
    deps.aggregates.streams.read(streamOf.stream(ids('stream')), ({ env_id }) => env_id !== null)
  const first = newIdOf(now, 1)
  const [isOfFormerWindow, isKnown] = await Promise.all([exists(newIdOf(now - 1, 1)), exists(first)])
  if (!isOfFormerWindow && !isKnown) return { kind: 'new', newId: first }
  // A new attempt is in the present window: in the former one, it would be recognized for less than the time.
  for (const window of isOfFormerWindow ? [now - 1, now] : [now])
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
      const ids = newIdOf(window, attempt)
      if (!(await exists(ids))) {
        if (window === now) return { kind: 'new', newId: ids }
        break
      }
      const found = { run_id: ids('run'), stream_id: ids('stream') }
      const ending = await awaitEnding(
        deps,
        { ...found, after: REQUESTED_AT },
        { signal: AbortSignal.any([AbortSignal.timeout(timeoutMs + BEYOND_TIMEOUT_MS), deps.stopping]) },
      )
      if (!ending) throw new AppError('unavailable', 'An earlier request with this delivery is in progress')
      if (await isAccepted(deps, ending)) return { kind: 'accepted', ...found, ending }
    }
  return { kind: 'new', newId }
}

/** A provider sends a delivery again after any reply with an error, also one that the function did not mean. */
const isAccepted = async ({ payloads }: Pick<Deps, 'payloads'>, ending: Ending): Promise<boolean> => {
  if (ending.type !== 'RunSucceeded') return false
  const result = await payloads.loadLoosely(payloadOf('result', ending))
  if (mistakeInReply(result) !== undefined) return false
  return !isReply(result) || result.status < 400
}
