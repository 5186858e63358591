import type { Context } from 'koa'
import { bodyFields, INLINE_BODY_BYTES } from '../../commands/webhooks/storeBody.ts'
import { AppError } from '../../errors.ts'
import type { WebhookRequest } from '../../ports/runtime.ts'
import { readBody } from './body.ts'
import { incoming } from './incoming.ts'
import type { WebhookHead } from './webhookHead.ts'

/** Maximum bytes of a request body, as for webhooks of GitHub. All of them reach the function. */
const MAX_BODY_BYTES = 25 << 20

/** Reads the request as the handler receives it (SPEC.md, Webhook request). `head` is its part before the body. */
export const readWebhookRequest = async (ctx: Context, head: WebhookHead): Promise<WebhookRequest> => {
  if (largeBodyOf(ctx)) return head
  return { ...head, ...bodyFields(await readBody(ctx.req, INLINE_BODY_BYTES)) }
}

/**
 * Returns a body that is large or of unknown size, chunk by chunk; undefined for other bodies. Rejects with
 * `payload_too_large` when it is known to be too large for every function.
 */
export const largeBodyOf = ({ req }: Pick<Context, 'req'>): (() => AsyncIterable<Buffer>) | undefined => {
  const announced = req.headers['content-length']
  const size = announced === undefined ? undefined : Number(announced)
  const isChunked = req.headers['transfer-encoding'] !== undefined
  if (size !== undefined && size > MAX_BODY_BYTES) throw tooLarge()
  return isChunked || (size ?? 0) > INLINE_BODY_BYTES ? () => limited(incoming(req)) : undefined
}

const tooLarge = () => new AppError('payload_too_large', `body: expected at most ${MAX_BODY_BYTES} bytes`)

async function* limited(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let size = 0
  for await (const chunk of chunks) {
    size += chunk.length
    if (size > MAX_BODY_BYTES) throw tooLarge()
    yield chunk
  }
}
