import type { Context } from 'koa'
import { clock } from '../../clock.ts'
import { AppError, isAppError } from '../../errors.ts'
import { newId } from '../../ids.ts'
import { compilePermissions } from '../../access/permissions.ts'
import type { ApiDeps } from '../deps.ts'
import type { Ask, Needs, Reply, Route } from '../route.ts'
import type { Credential } from '../../access/credential.ts'
import { bearerOf } from './bearer.ts'
import { DEFAULT_MAX_BODY, parseJson, readBody } from './body.ts'
import type { NewId } from '../../ids.ts'
import { errorBody } from './problem.ts'
import { sendContinue } from './expectContinue.ts'

const NOBODY = {
  kind: 'api-key',
  id: '',
  env_id: '',
  api_key_id: '',
  expires: Infinity,
  permissions: compilePermissions({}),
} as const satisfies Credential

/** Runs a route: authenticates, counts, validates, authorizes, then calls the handler (401, 429, 400, 403, 404). */
export const serve =
  (route: Route, deps: ApiDeps) =>
  async (ctx: Context): Promise<void> => {
    if (route.operator) deps.operator.admit(ctx.headers.authorization)
    const credential = route.needs
      ? await deps.authenticator.authenticate(bearerOf(ctx.headers.authorization))
      : NOBODY
    const counted = route.needs && deps.orgRates.take(ctx, credential.env_id)
    if (counted) await counted
    if (!route.sendsContinue) sendContinue(ctx)
    const body = route.checkBody
      ? route.checkBody(parseJson(await readBody(ctx.req, route.maxBodyBytes ?? DEFAULT_MAX_BODY)))
      : undefined
    const request_id = ctx.state['request_id'] as string
    const cause = { env_id: credential.env_id, correlation_id: request_id, actor: credential.id }
    const ask: Ask = {
      params: ctx['params'] as Record<string, string>,
      query: route.checkQuery(ctx.query),
      body,
      credential,
      deps,
      request_id,
      caller: { cause, newId },
      once: (request, work) => onceFor(ask, route, request, work),
      hold: ({ gone, end }) =>
        deps.authenticator.hold({
          credential,
          gone,
          end,
          mayStill: (now) => isLetIn(route, { ...ask, credential: now }),
        }),
      ctx,
    }
    for (const needs of route.needs ?? []) if (!isGranted(needs, ask)) await demand(needs, ask)
    if (!isRepeatable(route) || ctx.headers['idempotency-key'] === undefined)
      return present(ctx, await route.handle(ask))
    const request = [ctx.querystring, body ?? null]
    send(
      ctx,
      await ask.once(request, (newId) => finalAnswer(route, { ...ask, caller: { ...ask.caller, newId } })),
    )
  }

/** The common case: the permission covers every path, so the resource need not be looked up. */
const isGranted = ({ type, action, or }: Needs, { credential: { permissions } }: Ask): boolean =>
  permissions.allows(type, action) || (or !== undefined && permissions.allows(type, or))

/** Whether the credential would still be admitted to this request. */
const isLetIn = async ({ needs }: Route, ask: Ask): Promise<boolean> => {
  try {
    for (const one of needs ?? []) if (!isGranted(one, ask)) await demand(one, ask)
    return true
  } catch {
    return false
  }
}

const demand = async ({ type, action, or, path }: Needs, ask: Ask): Promise<void> => {
  const paths = (await path?.(ask.params, ask)) ?? []
  for (const part of paths)
    for (const either of or === undefined ? [action] : [action, or])
      if (ask.credential.permissions.allows(type, either, part)) return
  throw lacking(type, action, paths[0])
}

export const lacking = (type: string, action: string, path = '*'): AppError =>
  new AppError('forbidden', `The credential lacks the permission ${type}:${path} ${action}`)

/** A reply as plain JSON, so that it can be stored and sent again. */
interface Answer {
  readonly status: number
  readonly headers?: Record<string, string>
  readonly body?: unknown
}

const present = (ctx: Context, reply: Reply): void => {
  if (reply.kind !== 'own') send(ctx, answerOf(reply, ctx.state['request_id'] as string))
}

const send = (ctx: Context, { status, headers, body }: Answer): void => {
  ctx.status = status
  if (headers) ctx.set(headers)
  if (body !== undefined) ctx.body = body
}

const answerOf = (reply: Exclude<Reply, { kind: 'own' }>, request_id: string): Answer => {
  const meta = { request_id, timestamp: clock.iso() }
  switch (reply.kind) {
    case 'item': {
      const { status, headers, data } = reply
      return { status, ...(headers && { headers }), body: { data, meta } }
    }
    case 'list': {
      const { items, total, limit, offset } = reply
      const pagination = { total, limit, offset, has_more: offset + items.length < total }
      return { status: 200, body: { data: items, pagination, meta } }
    }
    case 'none':
      return { status: 204 }
    default:
      return reply satisfies never
  }
}

/** Whether `serve` can store the reply: it read the body, and the handler does not write the reply itself. */
const isRepeatable = ({ takesKey, reply, form, rawBody }: Route): boolean =>
  takesKey && reply.kind !== 'stream' && !form && rawBody === undefined

/** Returns the reply, or the error reply if a repetition would get the same; rejects with any other error. */
const finalAnswer = async (route: Route, ask: Ask): Promise<Answer> => {
  try {
    const reply = await route.handle(ask)
    if (reply.kind === 'own')
      throw new AppError(
        'internal_server_error',
        'Expected a reply that can be stored, got one of the handler',
      )
    return answerOf(reply, ask.request_id)
  } catch (error) {
    if (!isAppError(error) || error.retryable || error.status >= 500 || error.status === 429) throw error
    if (error.code === 'quota_exceeded') throw error // the organization may get a higher plan
    return { status: error.status, body: errorBody(error, ask.request_id) }
  }
}

/** The scope of the operator's keys, which belong to no environment. */
const OPERATOR = 'operator'

export const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/

const onceFor = async <T>(
  { ctx, credential, deps, request_id }: Ask,
  { method, revealsSecret, operator }: Route,
  request: unknown,
  work: (newId: NewId) => Promise<T>,
): Promise<T> => {
  const key = ctx.headers['idempotency-key']
  if (key === undefined) return work(newId)
  if (typeof key !== 'string' || !IDEMPOTENCY_KEY.test(key)) {
    throw new AppError('bad_request', 'Idempotency-Key: expected 1 to 255 visible ASCII characters')
  }
  const { env_id, id } = operator ? { env_id: OPERATOR, id: OPERATOR } : credential
  const { value, replayed } = await deps.idempotency.once(
    { key, scope: [env_id, ...(revealsSecret ? [id] : []), method, ctx.path], request, env_id, request_id },
    // Without the ids of the claim: a second attempt creates a new secret, because no caller received the first one.
    revealsSecret ? () => work(newId) : work,
  )
  if (replayed) ctx.set('Idempotency-Replayed', 'true')
  return value
}
