import type { Context } from 'koa'
import { clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { compilePermissions } from '../../permissions.ts'
import type { ApiDeps } from '../deps.ts'
import type { Ask, Needs, Reply, Route } from '../route.ts'
import type { Credential } from './authenticate.ts'
import { parseJson, readBody } from './body.ts'
import { welcome } from './welcome.ts'

const DEFAULT_MAX_BODY = 1 << 20
const NOBODY = {
  kind: 'api-key',
  id: '',
  env_id: '',
  permissions: compilePermissions({}),
} as const satisfies Credential

/** Runs a route: who asks, what they ask, whether they may, then the handler; 401 before 400 before 403 before 404. */
export const serve =
  (route: Route, deps: ApiDeps) =>
  async (ctx: Context): Promise<void> => {
    if (route.operator) deps.operator.admit(ctx.headers.authorization)
    const credential = route.needs ? await deps.authenticator.authenticate(ctx.headers.authorization) : NOBODY
    if (!route.holdsBody) welcome(ctx)
    const body = route.checkBody
      ? route.checkBody(parseJson(await readBody(ctx.req, route.maxBodyBytes ?? DEFAULT_MAX_BODY)))
      : undefined
    const ask: Ask = {
      params: ctx['params'] as Record<string, string>,
      query: route.checkQuery(ctx.query),
      body,
      credential,
      deps,
      request_id: ctx.state['request_id'] as string,
      ctx,
    }
    for (const needs of route.needs ?? []) if (!isGranted(needs, ask)) await demand(needs, ask)
    present(ctx, await route.handle(ask))
  }

/** Without looking at what the request is about: so it goes nearly always. */
const isGranted = ({ type, action, or }: Needs, { credential: { permissions } }: Ask): boolean =>
  permissions.allows(type, action) || (or !== undefined && permissions.allows(type, or))

const demand = async ({ type, action, or, path }: Needs, ask: Ask): Promise<void> => {
  const paths = (await path?.(ask.params, ask)) ?? []
  for (const part of paths)
    for (const either of or === undefined ? [action] : [action, or])
      if (ask.credential.permissions.allows(type, either, part)) return
  throw lacking(type, action, paths[0])
}

/** The refusal of a credential that may not do it. */
export const lacking = (type: string, action: string, path = '*'): AppError =>
  new AppError('forbidden', `The credential lacks the permission ${type}:${path} ${action}`)

const present = (ctx: Context, reply: Reply): void => {
  const meta = { request_id: ctx.state['request_id'] as string, timestamp: clock.iso() }
  switch (reply.kind) {
    case 'item':
      ctx.status = reply.status
      if (reply.headers) ctx.set(reply.headers)
      ctx.body = { data: reply.data, meta }
      return
    case 'list': {
      const { items, total, limit, offset } = reply
      ctx.body = {
        data: items,
        pagination: { total, limit, offset, has_more: offset + items.length < total },
        meta,
      }
      return
    }
    case 'none':
      ctx.status = 204
      return
    case 'own':
      return
    default:
      reply satisfies never
  }
}
