import type { Context } from 'koa'
import { parseToken } from '../../access/tokens.ts'
import type { WebhookEndpoint } from '../../commands/webhooks/findWebhook.ts'
import { MASK } from '../../events/mask.ts'
import { withParameters } from '../../events/webhookPath.ts'
import type { WebhookRequest } from '../../ports/runtime.ts'
import type { ApiDeps } from '../deps.ts'
import { bearerOf } from './bearer.ts'
import { clientIp } from './clientIp.ts'
import { withoutOurCookies } from './cookies.ts'
import { knownScheme } from './scheme.ts'

/** The part of a webhook request that is known before its body. */
export type WebhookHead = Pick<
  WebhookRequest,
  'method' | 'url' | 'original-url' | 'params' | 'headers' | 'query' | 'ip'
>

type Deps = Pick<ApiDeps, 'publicUrl' | 'trustedProxies' | 'operator'>

/** Returns the head as the handler receives it (SPEC.md, Webhook request). The token is only in `original-url`. */
export const webhookHead = (
  ctx: Context,
  { webhook, domain, params }: WebhookEndpoint,
  deps: Deps,
): WebhookHead => {
  const ip = clientIp(ctx.req, deps)
  return {
    method: ctx.method,
    url: `/webhook/${webhook.service}${params ? withParameters(webhook.path, params) : webhook.path}`,
    'original-url': originOf(ctx, domain, deps) + ctx.path + ctx.search,
    headers: headersFor(ctx, { isChecked: webhook.auth === 'required' }, deps),
    ...(params && { params }),
    query: { ...ctx.query } as Record<string, string | string[]>,
    ...(ip !== '' && { ip }),
  }
}

/** The URL that the sender called: `Host` is the sender's text, so only a custom domain is taken from it. */
const originOf = (ctx: Context, domain: string | null, deps: Deps): string => {
  if (domain === null) return deps.publicUrl()
  const scheme = knownScheme(ctx, deps) ?? new URL(deps.publicUrl()).protocol.slice(0, -1)
  return `${scheme}://${domain}`
}

/**
 * Credentials of this service are withheld from the function, because its deployer could act as the caller. The log
 * shows that they were sent.
 */
const headersFor = (
  ctx: Context,
  { isChecked }: { isChecked: boolean },
  { operator }: Deps,
): Record<string, string> => {
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(ctx.headers)) {
    const isWithheld =
      name === 'proxy-authorization' ||
      (name === 'authorization' && (isChecked || isOurs(String(value), operator)))
    if (isWithheld) headers[name] = MASK
    else if (name === 'cookie') headers[name] = withoutOurCookies(String(value))
    else if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(', ') : value
  }
  return headers
}

/** Whether a token of the service is part of the header, with any scheme. */
const isOurs = (authorization: string, operator: Deps['operator']): boolean =>
  authorization.split(/[\s,;="]+/).some((part) => parseToken(part) !== null) ||
  operator.isToken(bearerOf(authorization) ?? '')
