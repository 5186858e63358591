import type { Context, Next } from 'koa'
import { clock } from '../../clock.ts'
import { isFullDisk } from '../../disk/fullDisk.ts'
import { fullDisk } from './fullDisk.ts'
import { AppError, messageOf } from '../../errors.ts'
import { newId } from '../../ids.ts'
import type { Logger } from '../../logger.ts'
import { type Span, type Tracer, traceparentOf } from '../../ports/tracer.ts'
import type { CorsOrigins } from '../../ports/corsOrigins.ts'
import { openToPages } from './cors.ts'
import { WORKING_PATH } from './requestLimit.ts'
import type { RequestMeter } from './requestMeter.ts'
import { DEFAULT_HEADERS } from './replyHeaders.ts'
import { checkHead } from './requestHead.ts'
import { helpHeaders } from './helpLink.ts'
import { drained, lingering } from './linger.ts'
import { awaitsContinue } from './expectContinue.ts'

interface Given {
  readonly logger: Logger
  readonly requests: RequestMeter
  readonly corsOrigins: CorsOrigins | null
  readonly tracer: Tracer | null
}

/**
 * Adds the request id to every reply and turns every error into an error body (SPEC.md, Errors). Counts every request
 * here, because one more middleware would cost each request a promise.
 */
export const problem =
  ({ logger, requests, corsOrigins, tracer }: Given) =>
  async (ctx: Context, next: Next): Promise<void> => {
    const beganAt = clock.monotonic()
    const request_id = newId()
    ctx.state.request_id = request_id
    ctx.set('X-Request-Id', request_id)
    ctx.set(DEFAULT_HEADERS)
    openToPages(ctx, corsOrigins)
    const span = begunSpan(ctx, tracer)
    try {
      checkHead(ctx.req)
      await next()
      if (!ctx.req.complete) endUnread(ctx)
    } catch (thrown) {
      const error = toAppError(thrown)
      requests.refused(error.code)
      if (error.code === 'internal_server_error' && error.data['byFunction'] !== true) {
        logger.error('A request failed', {
          request_id,
          method: ctx.method,
          route: ctx.state.route ?? '',
          error: messageOf(thrown),
          stack: (thrown as Error).stack,
        })
      }
      if (ctx.headerSent) {
        ctx.res.destroy() // a reply that has begun cannot become an error
        return
      }
      ctx.set(retryHeaders(error))
      if (error.code === 'unauthorized') ctx.set('WWW-Authenticate', 'Bearer')
      ctx.set(helpHeaders(error, ctx))
      ctx.status = error.status
      ctx.type = 'application/json' // the handler may have set another type
      const body = errorBody(error, request_id)
      if (ctx.req.complete) ctx.body = body
      else sendEarly(ctx, JSON.stringify(body))
    } finally {
      requests.replied(ctx, beganAt)
      if (span) endSpan(span, ctx)
      logger.debug?.('A request was served', {
        request_id,
        method: ctx.method,
        route: ctx.state.route ?? '',
        status: ctx.res.statusCode,
        ms: Math.round(clock.monotonic() - beganAt),
      })
    }
  }

/**
 * Continues the trace of the caller, or begins one. Without a collector, the context of the caller goes on to the functions
 * that the request starts.
 */
const begunSpan = (ctx: Context, tracer: Tracer | null): Span | null => {
  const { traceparent: header } = ctx.headers
  if (!tracer && header === undefined) return null
  const parent = traceparentOf(header)
  const span =
    tracer && WORKING_PATH.test(ctx.path)
      ? tracer.begin(ctx.method, {
          kind: 'server',
          parent,
          attributes: { 'http.request.method': ctx.method, 'svc.request_id': ctx.state.request_id },
        })
      : null
  const traceparent = span?.traceparent ?? parent
  if (traceparent !== undefined) ctx.state.traceparent = traceparent
  return span
}

/** The route and not the path: the URL of a webhook contains its token. */
const endSpan = (span: Span, { method, res, state: { route } }: Context): void => {
  const { statusCode } = res
  span.end({
    name: route === undefined ? method : `${method} ${route}`,
    attributes: {
      'http.response.status_code': statusCode,
      ...(route !== undefined && { 'http.route': route }),
    },
    ...(statusCode >= 500 && { error: String(statusCode) }),
  })
}

/** Ends the connection some time after the reply: the client may send a body that no handler reads for ever. */
const endUnread = ({ req, res }: Context): void => {
  res.once('finish', () => {
    void drained(req).then(() => {
      if (!req.complete) req.destroy()
    })
  })
}

/** Replies before the whole body has arrived. The connection cannot be reused, because the body may follow. */
const sendEarly = (ctx: Context, text: string): void => {
  ctx.set('Connection', 'close')
  ctx.body = awaitsContinue(ctx) ? text : lingering(ctx.req, text)
  ctx.length = Buffer.byteLength(text)
}

/** `run_id` names the failed run of a webhook. */
export const errorBody = ({ code, message, data: { run_id } }: AppError, request_id: string) => ({
  error: { code, message, request_id, ...(run_id !== undefined && { run_id }) },
})

/** The time after which another attempt may succeed. */
export const retryHeaders = ({ retryable, data }: AppError): Record<string, string> =>
  retryable ? { 'Retry-After': String(data['retryAfter'] ?? 1) } : {}

/** The client gets no detail of an unknown error; the server log has the cause. */
const toAppError = (thrown: unknown): AppError => {
  if (thrown instanceof AppError && thrown.code !== 'wrong_revision') return thrown
  if (isFullDisk(thrown)) return fullDisk(thrown)
  return new AppError(
    'internal_server_error',
    'An unexpected error occurred; the server log contains it with the request id',
  )
}
