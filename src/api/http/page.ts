import type { Context } from 'koa'
import { isNotModified } from './conditions.ts'

/** Allows no other hosts, no inline code and no framing. The icons of pages need `data:`. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** The headers of the pages of the service, which share its origin with the API. */
export const PAGE_HEADERS = {
  'Content-Security-Policy': POLICY,
  'Cross-Origin-Opener-Policy': 'same-origin',
  'X-Frame-Options': 'DENY',
} as const

/** Sets the headers and returns whether the client has the current version; otherwise the caller sends the body. */
export const hasCurrent = (
  ctx: Context,
  { type, etag, cache }: { type: string; etag: string; cache: string },
): boolean => {
  const isCurrent = isNotModified(ctx.get('If-None-Match'), etag)
  ctx.status = isCurrent ? 304 : 200
  ctx.type = type
  ctx.set({ ETag: etag, 'Cache-Control': cache })
  return isCurrent
}

/** Browsers send some hundred characters. The parser reads a quoted text again at each comma in it. */
const MAX_ACCEPT = 1024

/** Redirects a browser from `/` to the dashboard. Returns false for any other request. */
export const ledToDashboard = (ctx: Context): boolean => {
  if (ctx.path !== '/' || (ctx.method !== 'GET' && ctx.method !== 'HEAD')) return false
  ctx.vary('Accept')
  if (ctx.get('Accept').length > MAX_ACCEPT || ctx.accepts('json', 'html') !== 'html') return false
  ctx.redirect('/ui')
  return true
}
