import type { Context } from 'koa'
import { isTrusted, type TrustedProxies } from '../../ports/trustedProxies.ts'

/** The scheme of the URL that the client called; undefined if it may be that of a proxy that does not name it. */
export const knownScheme = (
  ctx: Context,
  { trustedProxies }: { readonly trustedProxies: TrustedProxies },
): string | undefined => {
  const forwarded = ctx.get('X-Forwarded-Proto')
  const isProxy = isTrusted(trustedProxies, ctx.req.socket.remoteAddress ?? '')
  if (isProxy && /^https?$/.test(forwarded)) return forwarded
  return ctx.protocol === 'https' ? 'https' : undefined
}
