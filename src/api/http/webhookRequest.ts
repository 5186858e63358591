import type { IncomingMessage } from 'node:http'
import type { Context } from 'koa'
import { bodyFields, INLINE_BODY_BYTES } from '../../commands/webhooks/storeBody.ts'
import { AppError } from '../../errors.ts'
import type { GiveBack } from '../../loops/byteBudget.ts'
import type { WebhookRequest } from '../../ports/runtime.ts'
import { readBody } from './body.ts'
import { incoming } from './incoming.ts'
import type { WebhookHead } from './webhookHead.ts'

/** Maximum bytes of a request body, as for webhooks of GitHub. All of them reach the function. */
const MAX_BODY_BYTES = 25 << 20

/** Reads the request as the handler receives it (SPEC.md, Webhook request). `head` is its part before the body. */
export const readWebhookRequest = async (ctx: Context, head: WebhookHead): Promise<WebhookRequest> => {
  return isLarge(ctx.req) ? head : { ...head, ...bodyFields(await readBody(ctx.req, INLINE_BODY_BYTES)) }
}

/**
 * Returns a body that is large or of unknown size, chunk by chunk; undefined for other bodies. Rejects with
 * `payload_too_large` when it is known to be too large for every function.
 */
export const largeBodyOf = (
  { req }: Pick<Context, 'req'>,
  takeMemory: () => Promise<GiveBack>,
): (() => AsyncIterable<Buffer>) | undefined => {
  if (sizeOf(req) > MAX_BODY_BYTES) throw tooLarge()
  return isLarge(req) ? () => limited(req, takeMemory) : undefined
}

/** The announced size; 0 if there is none. */
const sizeOf = ({ headers }: IncomingMessage): number => Number(headers['content-length'] ?? 0)

const isLarge = (request: IncomingMessage): boolean =>
  request.headers['transfer-encoding'] !== undefined || sizeOf(request) > INLINE_BODY_BYTES

const tooLarge = () => new AppError('payload_too_large', `body: expected at most ${MAX_BODY_BYTES} bytes`)

/** The part of a body that could also have arrived as a small one takes no memory: its sender may send no more. */
async function* limited(
  request: IncomingMessage,
  takeMemory: () => Promise<GiveBack>,
): AsyncGenerator<Buffer> {
  let giveBack: GiveBack | undefined
  try {
    let size = 0
    for await (const chunk of incoming(request)) {
      size += chunk.length
      if (size > MAX_BODY_BYTES) throw tooLarge()
      if (size > INLINE_BODY_BYTES) giveBack ??= await takeMemory()
      yield chunk
    }
  } finally {
    giveBack?.()
  }
}
