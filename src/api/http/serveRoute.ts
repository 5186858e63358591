import type { Context } from 'koa'
import { clock } from '../../clock.ts'
import { AppError, type ErrorCode, isAppError } from '../../errors.ts'
import type { ApiDeps, FrontDeps, LaterOperator } from '../deps.ts'
import type { Ask, CredentialRoute, OperatorRoute, PublicAsk, PublicRoute, Reply, Route } from '../route.ts'
import type { Credential } from '../../access/credential.ts'
import { keyFrom } from '../../events/idempotencyKey.ts'
import { PAST_BYTES } from '../../commands/audit/past.ts'
import { demandImported } from '../../commands/transfer/demandImported.ts'
import { asksForPast } from '../asOf.ts'
import { demandNeeds, isLetIn } from './admission.ts'
import { authenticated } from './authenticated.ts'
import { cookieIn, OPERATOR as OPERATOR_COOKIE, sessionCookie } from './cookies.ts'
import { sessionIn } from './sessionIn.ts'
import { clientIp } from './clientIp.ts'
import { demandUnconditional } from './conditions.ts'
import { DEFAULT_MAX_BODY, type LargeBody, parseJson, readBody } from './body.ts'
import { largeSizeOf, parseInMemory } from './jsonMemory.ts'
import type { ApiMemory } from './memory.ts'
import { type GiveBack, holding } from '../../loops/byteBudget.ts'
import { sendJson, type StoredField, storedFieldOf, withStored } from './jsonReply.ts'
import { newId, type NewId } from '../../ids.ts'
import { fromAddress } from '../../events/actor.ts'
import type { Cause, EnvCause } from '../../events/event.ts'
import type { Operator } from './operator.ts'
import { errorBody } from './problem.ts'
import { helpHeaders } from './helpLink.ts'
import { sendContinue } from './expectContinue.ts'

/**
 * Returns what runs a route: it admits, counts, validates, authorizes, then calls the handler (401, 429, 400, 403,
 * 404).
 */
export const serve = (route: Route, deps: ApiDeps): ((ctx: Context) => Promise<void>) => {
  if (route.needs) return serveCredential(route, deps)
  return route.operator ? serveOperator(route, deps) : servePublic(route, deps)
}

export const servePublic =
  <Deps>(route: PublicRoute<Deps>, deps: Deps) =>
  async (ctx: Context): Promise<void> =>
    present(ctx, await route.handle(await validated(route, deps, ctx)))

/** Serves a route of the operator on a node without the API. `otherwise` returns the error while keys are not open. */
export const serveOperatorOnly =
  (route: OperatorRoute<FrontDeps>, deps: FrontDeps & LaterOperator, otherwise: () => AppError) =>
  async (ctx: Context): Promise<void> => {
    const operator = deps.operator()
    if (!operator) throw otherwise()
    const cause = await admitted(ctx, operator, deps)
    const request = await validated(route, deps, ctx)
    present(ctx, await route.handle({ ...request, operator: { cause, newId } }))
  }

/** Resolves with the cause of what the operator requests. Rejects for any other caller. */
const admitted = async (ctx: Context, operator: Operator, deps: Pick<ApiDeps, 'trustedProxies'>) => {
  const cause = operatorCauseOf(ctx, deps)
  const { request_id } = ctx.state
  if (!(await operator.sessionOf(cookieIn(ctx, OPERATOR_COOKIE))))
    operator.admit(ctx.headers.authorization, { ip: clientIp(ctx.req, deps), request_id })
  return cause
}

/** The cause that facts of an operator's request record. */
export const operatorCauseOf = (ctx: Context, deps: Pick<ApiDeps, 'trustedProxies'>): Cause => ({
  correlation_id: ctx.state.request_id,
  actor: 'operator',
  actor_type: 'operator',
  ...fromAddress(clientIp(ctx.req, deps)),
  ...tracedBy(ctx),
})

const serveOperator =
  (route: OperatorRoute, deps: ApiDeps) =>
  async (ctx: Context): Promise<void> => {
    const cause = await admitted(ctx, deps.operator, deps)
    if (route.method !== 'GET') demandUnconditional(ctx.req)
    const request = await validated(route, deps, ctx)
    const once: Once = (content, work) =>
      onceFor(request, route, { id: OPERATOR, cause: { ...cause, env_id: OPERATOR } }, content, work)
    await answer(route, request, once, (ids) => route.handle({ ...request, operator: { cause, newId: ids } }))
  }

const serveCredential =
  (route: CredentialRoute, deps: ApiDeps) =>
  async (ctx: Context): Promise<void> => {
    const credential = await authenticated(
      ctx,
      deps,
      (route.takesSession && sessionIn(ctx)) || sessionCookie(ctx),
    )
    demandImported(deps.views.directory, credential.env_id)
    const counted = deps.orgRates.take(ctx, credential.env_id)
    if (counted) await counted
    if (route.method !== 'GET') demandUnconditional(ctx.req)
    const owner = deps.memory.ownerOf(credential.env_id)
    const { done, ...request } = await validated(route, deps, ctx, { of: deps.memory, owner })
    const forget = (part: object) => {
      for (const name of Object.keys(part)) Reflect.deleteProperty(part, name)
      done?.()
    }
    const work = { route, deps, request, forget }
    try {
      if (!asksForPast(request.query)) return await serveAs(credential, work)
      await holding(deps.memory.values, { owner, bytes: PAST_BYTES }, () => serveAs(credential, work))
    } finally {
      done?.()
    }
  }

/** The part of a cause that continues the trace of a request. */
export const tracedBy = ({ state: { traceparent } }: Context) =>
  traceparent === undefined ? {} : { traceparent }

/** The cause that facts of a credential's request record. */
export const credentialCause = (
  ctx: Context,
  { env_id, id, kind }: Pick<Credential, 'env_id' | 'id' | 'kind'>,
  deps: Pick<ApiDeps, 'trustedProxies'>,
): EnvCause => ({
  env_id,
  correlation_id: ctx.state.request_id,
  actor: id,
  actor_type: kind,
  ...fromAddress(clientIp(ctx.req, deps)),
  ...tracedBy(ctx),
})

const serveAs = async (
  credential: Credential,
  {
    route,
    deps,
    request,
    forget,
  }: { route: CredentialRoute; deps: ApiDeps; request: PublicAsk; forget: Ask['forget'] },
): Promise<void> => {
  const cause = credentialCause(request.ctx, credential, deps)
  const once: Once = (content, work) => onceFor(request, route, { id: credential.id, cause }, content, work)
  const asked = { ...request, credential, once, forget, hold: holdOf(route, credential, request) }
  await demandNeeds(route, asked)
  const askedBy = (ids: NewId): Ask => ({ ...asked, caller: { cause, newId: ids } })
  if (route.demand) await route.demand(askedBy(newId))
  await answer(route, request, once, (ids) => route.handle(askedBy(ids)))
}

/** An open reply keeps what permissions depend on, and not the body: its memory is given back when the handler returns. */
const holdOf = (
  route: CredentialRoute,
  credential: Credential,
  { params, deps, body }: Pick<PublicAsk, 'params' | 'deps' | 'body'>,
): Ask['hold'] => {
  const kept = { params, deps, body: route.permitted?.(body) }
  return ({ gone, end }) =>
    deps.authenticator.hold({
      credential,
      gone,
      end,
      mayStill: (now) => isLetIn(route, { ...kept, credential: now }),
    })
}

/** Reads the body, which the client may withhold until now, and checks the request against the declaration. */
const validated = async <Deps>(
  {
    checkQuery,
    checkBody,
    parseBody = parseJson,
    maxBodyBytes = DEFAULT_MAX_BODY,
    sendsContinue,
  }: Pick<Route, 'checkQuery' | 'checkBody' | 'parseBody' | 'maxBodyBytes' | 'sendsContinue'>,
  deps: Deps,
  ctx: Context,
  memory?: { readonly of: ApiMemory; readonly owner: string },
): Promise<Validated<Deps>> => {
  if (!sendsContinue) sendContinue(ctx)
  const read = (large?: LargeBody) => readBody(ctx.req, maxBodyBytes, large)
  const parse = (json: Buffer) => {
    const body = checkBody?.(parseBody(json))
    return { body, query: checkQuery(ctx.query) }
  }
  const parsed = !checkBody
    ? { value: parse(NO_BODY) }
    : memory
      ? await parseInMemory(memory.of, memory.owner, {
          limit: largeSizeOf(ctx.req, maxBodyBytes),
          read,
          parse,
        })
      : { value: parse(await read()) }
  const { body, query } = parsed.value
  return {
    ...('done' in parsed && { done: parsed.done }),
    params: ctx['params'] as Record<string, string>,
    query,
    body,
    deps,
    request_id: ctx.state.request_id,
    ctx,
  }
}

const NO_BODY = Buffer.alloc(0)

type Validated<Deps> = PublicAsk<Record<string, string>, unknown, unknown, Deps> & {
  /** Gives back the memory of a large value. */
  readonly done?: GiveBack
}

type Once = Ask['once']

/** Replies with the result of the handler; a request with an `Idempotency-Key` gets the same reply again. */
const answer = async (
  route: Route,
  { ctx, body, request_id, deps }: PublicAsk,
  once: Once,
  handle: (newId: NewId) => Promise<Reply> | Reply,
): Promise<void> => {
  if (!isRepeatable(route) || ctx.headers['idempotency-key'] === undefined)
    return sendAnswer(ctx, answerTo(await handle(newId), request_id), deps)
  const content = [ctx.querystring, body ?? null]
  await sendAnswer(ctx, await once(content, (ids) => finalAnswer(ctx, async () => handle(ids))), deps)
}

const sendAnswer = (
  ctx: Context,
  answer: Answer | null,
  { payloads }: Pick<ApiDeps, 'payloads'>,
): Promise<void> | undefined => {
  if (answer) send(ctx, answer)
  return answer?.stored && sendJson(ctx, withStored(answer.body, answer.stored), payloads)
}

/** A reply as plain JSON, so that it can be stored and sent again. */
interface Answer {
  readonly status: number
  readonly headers?: Record<string, string>
  readonly body?: unknown
  /** The field of the item that `body` leaves out. */
  readonly stored?: StoredField
}

/** Null: the handler has sent the reply. */
const answerTo = (reply: Reply, request_id: string): Answer | null =>
  reply.kind === 'own' ? null : answerOf(reply, request_id)

const present = (ctx: Context, reply: Reply): void => {
  const answer = answerTo(reply, ctx.state.request_id)
  if (answer) send(ctx, answer)
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
      const stored = storedFieldOf(data)
      const known = stored ? { ...(data as object), [stored.name]: null } : data
      return { status, ...(headers && { headers }), body: { data: known, meta }, ...(stored && { stored }) }
    }
    case 'list': {
      const { items, total, limit, offset, searched_to, next } = reply
      const pagination = {
        total,
        limit,
        offset,
        has_more: offset + items.length < total,
        ...(searched_to !== undefined && { searched_to }),
        ...(next !== undefined && { next }),
      }
      return { status: 200, body: { data: items, pagination, meta } }
    }
    case 'none':
      return { status: 204 }
    default:
      return reply satisfies never
  }
}

/** Whether `serve` can store the reply: it reads the body, and the handler does not write the reply itself. */
const isRepeatable = ({ takesKey, reply, form, rawBody }: Route): boolean =>
  takesKey && reply.kind !== 'stream' && !form && rawBody === undefined

/** Refusals that end when the organization gets a higher plan or uses less. */
const BY_PLAN: ReadonlySet<ErrorCode> = new Set(['quota_exceeded', 'plan_required', 'domain_limit_reached'])

/** Returns the reply, or the error reply if a repetition would get the same; rejects with any other error. */
const finalAnswer = async (ctx: Context, handle: () => Promise<Reply>): Promise<Answer> => {
  const { request_id } = ctx.state
  try {
    const reply = await handle()
    if (reply.kind === 'own')
      throw new AppError(
        'internal_server_error',
        'Expected a reply that can be stored, got one that the handler has sent',
      )
    if (reply.kind === 'item' && reply.isUnfinished)
      throw new AppError(
        'unavailable',
        'The run has not ended: send the request again with its Idempotency-Key',
      )
    return answerOf(reply, request_id)
  } catch (error) {
    if (!isAppError(error) || error.retryable || error.status >= 500 || error.status === 429) throw error
    if (BY_PLAN.has(error.code)) throw error
    return { status: error.status, headers: helpHeaders(error, ctx), body: errorBody(error, request_id) }
  }
}

/** The scope of the operator's keys, which belong to no environment. */
const OPERATOR = 'operator'

const onceFor = async <T>(
  { ctx, deps }: PublicAsk,
  { method, revealsSecret }: Route,
  { id, cause }: { readonly id: string; readonly cause: EnvCause },
  request: unknown,
  work: (newId: NewId) => Promise<T>,
): Promise<T> => {
  const key = ctx.headers['idempotency-key']
  if (key === undefined) return work(newId)
  const { value, replayed } = await deps.idempotency.once(
    {
      key: keyFrom(key, 'Idempotency-Key'),
      scope: [cause.env_id, id, method, ctx.path],
      earlierScope: [cause.env_id, ...(revealsSecret ? [id] : []), method, ctx.path],
      request,
      cause,
    },
    // A second attempt must create a new secret with new ids, because no caller received the first secret.
    revealsSecret ? () => work(newId) : work,
  )
  if (replayed) ctx.set('Idempotency-Replayed', 'true')
  return value
}
