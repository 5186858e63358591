import type { Context } from 'koa'
import { parseToken } from '../../access/tokens.ts'
import { clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { MASK } from '../../events/mask.ts'
import type { ApiDeps } from '../deps.ts'
import { knownScheme } from './scheme.ts'

/**
 * The cookies of the dashboard. A browser sends them only to the API that reads them, so no webhook receives one.
 *
 * D1: a cookie is a credential only in a request of a page of this origin that has the header `Svc-Dashboard: 1`. Pages
 * of other origins cannot send this header, because no CORS reply allows it; forms and links cannot either.
 * D2: functions have no page on this origin that runs scripts (`webhookReply.ts`), and their replies set no cookie here.
 */
interface Cookie {
  readonly name: string
  readonly path: string
}

export const SESSION: Cookie = { name: 'svc_session', path: '/v1' }
export const OPERATOR: Cookie = { name: 'svc_operator', path: '/operator' }

/** The part of a description that names D1. */
export const FROM_PAGES = 'Only pages of the dashboard send this: it requires the header `Svc-Dashboard: 1`.'

/** The body limit of a sign-in: a token. */
export const MAX_TOKEN_BYTES = 4096

/** Whether a page of the dashboard sends the request (D1). Browsers send no `Sec-Fetch-Site` without TLS. */
export const isOfDashboard = ({ method, headers }: Context): boolean => {
  const { origin, host, 'sec-fetch-site': site } = headers
  if (headers['svc-dashboard'] !== '1') return false
  if (site !== undefined) return site === 'same-origin'
  if (origin === undefined) return method === 'GET' || method === 'HEAD' // their requests have no Origin
  return origin.replace(/^https?:\/\//, '') === host
}

/** Throws `forbidden` for a request of anything else: another site could sign its visitor in or out. */
export const demandDashboard = (ctx: Context): void => {
  if (isOfDashboard(ctx)) return
  throw new AppError(
    'forbidden',
    'Svc-Dashboard: expected the header with the value 1, in a request of a page of this origin',
  )
}

/** The value that a page of the dashboard sends, unless the request has another credential. */
export const cookieIn = (ctx: Context, { name }: Cookie): string | undefined => {
  if (ctx.headers.authorization !== undefined || !isOfDashboard(ctx)) return undefined
  const given = (ctx.headers.cookie ?? '').split(';').map((part) => part.trim())
  const [value, other] = given.filter((part) => part.startsWith(`${name}=`))
  // Another host of the same site may have set the second one, and its order is not known.
  return other === undefined ? value?.slice(name.length + 1) : undefined
}

/** The token of a session in the cookie. Other credentials live longer, so none of them belongs there. */
export const sessionCookie = (ctx: Context): string | undefined => {
  const value = cookieIn(ctx, SESSION)
  return value !== undefined && parseToken(value)?.kind === 'session' ? value : undefined
}

type Deps = Pick<ApiDeps, 'trustedProxies'>

/** `expires`: milliseconds since 1970. */
export const setCookie = (
  ctx: Context,
  cookie: Cookie,
  { value, expires }: { readonly value: string; readonly expires: number },
  deps: Deps,
): void => send(ctx, cookie, value, Math.max(0, Math.floor((expires - clock.now()) / 1000)), deps)

export const clearCookie = (ctx: Context, cookie: Cookie, deps: Deps): void => send(ctx, cookie, '', 0, deps)

const send = (ctx: Context, { name, path }: Cookie, value: string, seconds: number, deps: Deps): void => {
  const isSecure = knownScheme(ctx, deps) === 'https' || ctx.get('Origin').startsWith('https:')
  const attributes = ['HttpOnly', 'SameSite=Strict', `Path=${path}`, `Max-Age=${seconds}`]
  ctx.set('Set-Cookie', [`${name}=${value}`, ...attributes, ...(isSecure ? ['Secure'] : [])].join('; '))
}

const OURS = new RegExp(`((?:^|;)\\s*(?:${SESSION.name}|${OPERATOR.name})=)[^;]*`, 'g')

/** Masks the cookies of the dashboard in a header. Only a client that is no browser sends them to a webhook. */
export const withoutOurCookies = (header: string): string => header.replaceAll(OURS, `$1${MASK}`)
