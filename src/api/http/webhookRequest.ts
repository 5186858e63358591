import { isUtf8 } from 'node:buffer'
import type { Context } from 'koa'
import type { WebhookRequest } from '../../ports/runtime.ts'
import { readBody } from './body.ts'
import type { WebhookHead } from './webhookHead.ts'

/** Maximum bytes of a request body, as for webhooks of GitHub. */
const MAX_BODY_BYTES = 25 << 20

/** Reads the request as the handler receives it (SPEC.md, Webhook request). `head` is its part before the body. */
export const readWebhookRequest = async (ctx: Context, head: WebhookHead): Promise<WebhookRequest> => {
  const bytes = await readBody(ctx.req, MAX_BODY_BYTES)
  const text = bytes.toString('utf8')
  return {
    ...head,
    ...(bytes.length > 0 && {
      body: parsedBody(text, ctx.get('content-type')),
      'body-raw': text,
      ...(!isUtf8(bytes) && { 'body-bytes': bytes.toString('base64') }),
    }),
  }
}

/** Parses JSON of any content type, because many senders declare none or a form; otherwise a form, otherwise text. */
const parsedBody = (text: string, contentType: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return contentType.includes('application/x-www-form-urlencoded')
      ? Object.fromEntries(new URLSearchParams(text))
      : text
  }
}
