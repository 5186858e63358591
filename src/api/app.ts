import Router from '@koa/router'
import Koa from 'koa'
import { AppError, messageOf } from '../errors.ts'
import type { ApiDeps } from './deps.ts'
import { problem } from './http/problem.ts'
import { serve } from './http/serve.ts'
import type { Route } from './route.ts'
import { healthRoutes } from './routes/health.ts'
import { allRoutes } from './routes/index.ts'

/** Creates the Koa application. Only this file defines the order of its middleware. */
export const createApp = (deps: ApiDeps): Koa =>
  appOf(allRoutes, deps, (method, path) => new AppError('not_found', `No route ${method} ${path}`))

/**
 * Creates the application with health checks only, for nodes without the API and until the API has started. Other
 * requests get the error of `otherwise`.
 */
export const createFront = (
  deps: Pick<ApiDeps, 'logger' | 'about' | 'notReady'>,
  otherwise: () => AppError,
): Koa => appOf(healthRoutes, deps as ApiDeps, otherwise)

const appOf = (
  routes: readonly Route[],
  deps: ApiDeps,
  unknown: (method: string, path: string) => AppError,
): Koa => {
  const app = new Koa()
  app.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'ERR_STREAM_PREMATURE_CLOSE' || error.code === 'ECONNRESET' || error.code === 'EPIPE')
      return // the client left
    deps.logger.error('A reply failed', { error: messageOf(error) })
  })

  const router = new Router()
  for (const route of routes) router.register(route.path, [route.method], serve(route, deps))

  app.use(problem(deps.logger))
  app.use(async (ctx, next) => {
    await next()
    if (ctx.body !== undefined || ctx.respond === false) return
    if (ctx.status === 404) throw unknown(ctx.method, ctx.path)
    if (ctx['_matchedRoute'] === undefined && ctx.status >= 400)
      throw new AppError('method_not_allowed', `This path supports only ${ctx.response.get('Allow')}`)
  })
  app.use(router.routes())
  app.use(router.allowedMethods()) // sets an `Allow` header and a status that becomes the error above
  return app
}
