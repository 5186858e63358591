import type { Context } from 'koa'
import { parseToken } from '../../access/tokens.ts'
import { AppError } from '../../errors.ts'

/**
 * The session token in `?session=`; undefined if there is none. A URL is stored in more places than a header, so other
 * credentials, which live longer, are refused. No message repeats the value.
 */
export const sessionIn = ({ query: { session }, headers }: Context): string | undefined => {
  if (session === undefined) return undefined
  if (headers.authorization !== undefined)
    throw new AppError('bad_request', 'session: expected one credential, got also an Authorization header')
  if (typeof session !== 'string')
    throw new AppError('bad_request', `session: expected once, got ${session.length} times`)
  const kind = parseToken(session)?.kind
  if (kind === 'session' || session.startsWith('s_')) return session
  const got = kind === undefined ? 'another text' : kind === 'api-key' ? 'an API key' : 'a service key'
  throw new AppError('bad_request', `session: expected the token of a session, got ${got}`)
}
