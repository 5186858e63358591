import type { Context } from 'koa'
import type { Credential } from '../../access/credential.ts'
import { isAppError } from '../../errors.ts'
import type { ApiDeps } from '../deps.ts'
import { bearerOf } from './bearer.ts'
import { demandSession } from './cors.ts'
import { clientIp } from './clientIp.ts'

/**
 * Resolves with the credential of a request. Rejects with `unauthorized`, or with `rate_limit_exceeded` if the address
 * has sent too many requests without a valid credential. A credential that this node knows is not affected. `token` is
 * that of the `Authorization` header, unless the route takes another one.
 */
export const authenticated = async (
  ctx: Context,
  deps: Pick<ApiDeps, 'authenticator' | 'guesses' | 'trustedProxies'>,
  token = bearerOf(ctx.headers.authorization),
): Promise<Credential> => {
  const { authenticator, guesses } = deps
  try {
    const credential = await authenticator.authenticate(token, () =>
      guesses.check(clientIp(ctx.req, deps), ctx.state.request_id),
    )
    demandSession(ctx, credential)
    return credential
  } catch (error) {
    if (isAppError(error, 'unauthorized')) guesses.count(clientIp(ctx.req, deps), ctx.state.request_id)
    throw error
  }
}
