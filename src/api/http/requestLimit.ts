import type { Context, Middleware, Next } from 'koa'
import { AppError } from '../../errors.ts'
import { isTrusted, type TrustedProxies } from '../../ports/trustedProxies.ts'
import { AddressLimit } from './addressLimit.ts'
import { clientIp } from './clientIp.ts'

/** Requests in progress of one client behind a trusted proxy, streams included. */
const MAX_REQUESTS = 1000

/** The paths of requests that do work, without health checks and pages. */
export const WORKING_PATH = /^\/(?:(?:v1|webhook|operator)\/|mcp$)/

/** Limits the requests in progress of each client behind a proxy, whose connections are not limited. */
export const requestLimit = (deps: { readonly trustedProxies: TrustedProxies }): Middleware => {
  const limit = new AddressLimit(MAX_REQUESTS)
  return async (ctx: Context, next: Next): Promise<void> => {
    const { req, res, path } = ctx
    const isLimited = WORKING_PATH.test(path)
    if (!isLimited || !isTrusted(deps.trustedProxies, req.socket.remoteAddress ?? ''))
      return void (await next())
    const ip = clientIp(req, deps)
    if (!limit.take(ip))
      throw new AppError(
        'rate_limit_exceeded',
        `This address has ${MAX_REQUESTS} requests in progress, try again later`,
      )
    res.once('close', () => limit.giveBack(ip))
    await next()
  }
}
