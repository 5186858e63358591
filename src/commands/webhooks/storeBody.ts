import { isUtf8 } from 'node:buffer'
import type { Reservation } from '../../content/fileQuota.ts'
import type { Payloads } from '../../content/payloads.ts'
import type { RunInput } from '../../events/run.ts'
import type { WebhookRequest } from '../../ports/runtime.ts'

/** Maximum bytes of a body inside its request. The bytes of larger ones are stored beside it and not changed. */
export const INLINE_BODY_BYTES = 32 << 10

/** The fields of a request for a small body. The function's process parses it (SPEC.md, Webhook request). */
export const bodyFields = (bytes: Buffer): Pick<WebhookRequest, 'body-raw' | 'body-bytes'> =>
  bytes.length === 0
    ? {}
    : {
        'body-raw': bytes.toString('utf8'),
        ...(!isUtf8(bytes) && { 'body-bytes': bytes.toString('base64') }),
      }

/** Stores a body of unknown size while it arrives. It is never in memory as a whole. */
export const storeBody = async (
  payloads: Pick<Payloads, 'keepBytes'>,
  content: AsyncIterable<Buffer>,
  env: { readonly env_id: string },
  room?: Reservation,
): Promise<{ fields: ReturnType<typeof bodyFields>; stored: Pick<RunInput, 'body_ref'> }> => {
  const kept = await payloads.keepBytes(content, INLINE_BODY_BYTES, env, room)
  return Buffer.isBuffer(kept)
    ? { fields: bodyFields(kept), stored: {} }
    : { fields: {}, stored: { body_ref: kept } }
}
