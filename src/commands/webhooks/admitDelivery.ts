import type { WebhookRequest } from '../../ports/runtime.ts'
import type { CommandDeps } from '../deps.ts'
import { findDelivery, type KnownDelivery } from './deliveries.ts'
import type { WebhookEndpoint } from './findWebhook.ts'
import type { storeBody } from './storeBody.ts'
import type { Verification } from './verifyRequest.ts'

interface Received {
  readonly check: Verification
  /** The request with a small body. */
  readonly whole: WebhookRequest
  /** A body that was stored while it arrived. */
  readonly body: Awaited<ReturnType<typeof storeBody>> | undefined
  /** Milliseconds that a run of the function may take. */
  readonly timeout: number
}

/**
 * Verifies a request whose body has arrived and looks up its delivery; undefined if its provider gave it no id. Rejects
 * with `unauthorized`. A stored body that no run needs is removed.
 */
export const admitDelivery = async (
  deps: Parameters<typeof findDelivery>[0] & Pick<CommandDeps, 'payloads'>,
  endpoint: WebhookEndpoint,
  { check, whole, body, timeout }: Received,
): Promise<KnownDelivery | undefined> => {
  const ref = body?.stored.body_ref
  const discard = async (): Promise<void> => {
    if (ref) await deps.payloads.discard(ref).catch(() => {}) // then it is removed with the payloads of its day
  }
  try {
    const id = check.finish(whole)
    if (id === undefined) return undefined
    const known = await findDelivery(deps, endpoint, { id, timeoutMs: timeout })
    if (known.kind === 'accepted') await discard()
    return known
  } catch (error) {
    await discard()
    throw error
  }
}
