import type { Context } from 'koa'
import type { Credential } from '../../access/credential.ts'
import { isAppError } from '../../errors.ts'
import type { ApiDeps } from '../deps.ts'
import { bearerOf } from './bearer.ts'
import { clientIp } from './clientIp.ts'

/**
 * Resolves with the credential of a request. Rejects with `unauthorized`, or with `rate_limit_exceeded` if the address
 * has sent too many requests without a valid credential. A credential that this node knows is not affected.
 */
export const authenticated = async (
  ctx: Context,
  deps: Pick<ApiDeps, 'authenticator' | 'guesses' | 'trustedProxies'>,
): Promise<Credential> => {
  const { authenticator, guesses } = deps
  try {
    return await authenticator.authenticate(bearerOf(ctx.headers.authorization), () =>
      guesses.check(clientIp(ctx.req, deps), ctx.state.request_id),
    )
  } catch (error) {
    if (isAppError(error, 'unauthorized')) guesses.count(clientIp(ctx.req, deps), ctx.state.request_id)
    throw error
  }
}
