import { isIP } from 'node:net'
import Router from '@koa/router'
import Koa, { type Context } from 'koa'
import { AppError, messageOf } from '../errors.ts'
import type { ApiDeps, FrontDeps, LaterOperator } from './deps.ts'
import { answeredPreflight } from './http/cors.ts'
import { ledToDashboard } from './http/page.ts'
import { likelyPath } from './http/likelyPath.ts'
import { problem } from './http/problem.ts'
import { parseQueriesOnce } from './http/query.ts'
import { requestLimit } from './http/requestLimit.ts'
import { serve, serveOperatorOnly, servePublic } from './http/serveRoute.ts'
import type { ReplyShape } from './route.ts'
import { healthRoutes } from './routes/health.ts'
import { allRoutes } from './routes/index.ts'
import { metricsRoute } from './routes/metrics.ts'
import { webhookPreflights } from './routes/webhooks.ts'

declare module 'koa' {
  interface DefaultState {
    request_id: string
    /** The path of the route that handles the request; undefined when there is none. */
    route?: string
    /** The trace context of what the request does; undefined if it is not traced. */
    traceparent?: string
    /** Whether the request comes from a page of another origin that may use the API. */
    isOfPage?: boolean
  }
}

/** Creates the Koa application. Only this file defines the order of its middleware. */
export const createApp = (deps: ApiDeps): Koa =>
  appOf(
    [...allRoutes.map((route) => ({ ...route, serve: serve(route, deps) })), ...webhookPreflights(deps)],
    deps,
    noRoute,
    hostRule(deps),
  )

/** The error of a path without a route; `likely` is the path that was probably meant. */
type Unknown = (method: string, path: string, likely?: string) => AppError

const noRoute: Unknown = (method, path, likely) =>
  new AppError(
    'not_found',
    `No route ${method} ${path}${likely === undefined ? '' : `; did you mean ${likely}?`}`,
  )

/**
 * Returns whether a host serves a path. A custom domain serves webhooks only, because functions may run their pages on
 * its origin, and a former one nothing. The operator's API can be limited to one host.
 */
const hostRule =
  ({ views: { directory }, operatorHost, publicUrl }: ApiDeps): Serves =>
  ({ hostname, path, protocol }) => {
    const host = hostname.toLowerCase().replace(/\.$/, '')
    if (directory.domains.proved(host)) return path.startsWith('/webhook/')
    if (protocol === 'https') return false // only proved domains have TLS here
    const isOwn = () => host === operatorHost || host === new URL(publicUrl()).hostname
    if (directory.domains.isFormer(host) && !isOwn()) return false
    if (operatorHost === null || host === operatorHost) return true
    // A monitoring system reads each node at its address, where its Host header cannot be chosen.
    return path === metricsRoute.path
      ? isIP(host.replace(/^\[|\]$/g, '')) !== 0
      : !path.startsWith('/operator/')
  }

/**
 * Creates the application with health checks and metrics only, for nodes without the API and until the API has started.
 * Other requests get the error of `otherwise`.
 */
export const createFront = (deps: FrontDeps & LaterOperator, otherwise: () => AppError): Koa =>
  appOf(
    [
      ...healthRoutes.map((route) => ({ ...route, serve: servePublic(route, deps) })),
      { ...metricsRoute, serve: serveOperatorOnly(metricsRoute, deps, otherwise) },
    ],
    deps,
    otherwise,
  )

interface Endpoint {
  readonly method: string
  readonly path: string
  readonly reply?: Pick<ReplyShape, 'kind'>
  readonly serve: (ctx: Context) => Promise<void>
}

type Serves = (ctx: Pick<Context, 'hostname' | 'path' | 'protocol'>) => boolean

const appOf = (
  endpoints: readonly Endpoint[],
  {
    logger,
    trustedProxies,
    requests,
    corsOrigins,
    tracer = null,
  }: Pick<FrontDeps, 'logger' | 'trustedProxies' | 'requests' | 'corsOrigins'> &
    Partial<Pick<ApiDeps, 'tracer'>>,
  unknown: Unknown,
  serves: Serves = () => true,
): Koa => {
  const app = new Koa()
  parseQueriesOnce(app)
  app.on('error', (error: NodeJS.ErrnoException, ctx?: Context) => {
    if (error.code === 'ERR_STREAM_PREMATURE_CLOSE' || error.code === 'ECONNRESET' || error.code === 'EPIPE')
      return // the client left
    logger.error('A reply failed', { request_id: ctx?.state.request_id, error: messageOf(error) })
  })

  const router = new Router({ sensitive: true, strict: true }) // else a proxy's rule for a path could be bypassed
  for (const { method, path, reply, serve } of endpoints) {
    router.register(path, [method], (ctx) => {
      ctx.state.route = path
      return serve(ctx)
    })
    // The router lets HEAD use a GET route. A stream would take the events of its consumer and write them nowhere.
    const layer = router.stack.at(-1)
    if (layer && reply?.kind === 'stream') layer.methods = [method]
  }

  const isRoute = (method: string) => (path: string) => router.match(path, method).route

  app.use(problem({ logger, requests, corsOrigins, tracer }))
  app.use(requestLimit({ trustedProxies }))
  app.use(async (ctx, next) => {
    if (!serves(ctx)) throw unknown(ctx.method, ctx.path)
    if (answeredPreflight(ctx) || ledToDashboard(ctx)) return
    await next()
    if (ctx.body !== undefined || ctx.respond === false) return
    const isRefused = ctx.state.route === undefined && ctx.status >= 400
    const allowed = ctx.response.get('Allow') // empty for a path that has no route
    if (ctx.status === 404 || (isRefused && allowed === ''))
      throw unknown(ctx.method, ctx.path, likelyPath(ctx.path, isRoute(ctx.method)))
    if (isRefused) throw new AppError('method_not_allowed', `This path supports only ${allowed}`)
  })
  app.use(router.routes())
  app.use(router.allowedMethods()) // sets an `Allow` header and a status that becomes the error above
  return app
}
