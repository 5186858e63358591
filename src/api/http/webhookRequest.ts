import { isUtf8 } from 'node:buffer'
import type { Context } from 'koa'
import type { WebhookRequest } from '../../ports/runtime.ts'
import { readBody } from './body.ts'

/** Maximum bytes of a request body, as for webhooks of GitHub. */
const MAX_BODY_BYTES = 25 << 20

/** Reads the request as the handler receives it (SPEC.md, Webhook request). The token is only in `original-url`. */
export const readWebhookRequest = async (
  ctx: Context,
  { service, path }: { service: string; path: string },
): Promise<WebhookRequest> => {
  const bytes = await readBody(ctx.req, MAX_BODY_BYTES)
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(ctx.headers)) {
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(', ') : value
  }
  const ip = (ctx.get('x-forwarded-for').split(',')[0] ?? '').trim() || ctx.get('x-real-ip')
  const text = bytes.toString('utf8')
  return {
    method: ctx.method,
    url: `/webhook/${service}${path}`,
    'original-url': ctx.href,
    headers,
    query: { ...ctx.query } as Record<string, string | string[]>,
    ...(bytes.length > 0 && {
      body: parsedBody(text, ctx.get('content-type')),
      'body-raw': text,
      ...(!isUtf8(bytes) && { 'body-bytes': bytes.toString('base64') }),
    }),
    ...(ip !== '' && { ip }),
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
