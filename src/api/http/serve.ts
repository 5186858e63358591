import type { Context } from 'koa'
import { clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import type { ApiDeps } from '../deps.ts'
import type { Ask, Needs, Reply, Route } from '../route.ts'
import type { Credential } from './authenticate.ts'
import { parseJson, readBody } from './body.ts'

const DEFAULT_MAX_BODY = 1 << 20
const NOBODY = {
  kind: 'api-key',
  id: '',
  env_id: '',
  permissions: { allows: () => false },
} as const satisfies Credential

/** Runs a route: who asks, what they ask, whether they may, then the handler; 401 before 400 before 403 before 404. */
export const serve =
  (route: Route, deps: ApiDeps) =>
  async (ctx: Context): Promise<void> => {
    const credential = route.needs ? await deps.authenticator.authenticate(ctx.headers.authorization) : NOBODY
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
    for (const needs of route.needs ?? []) demand(needs, ask)
    present(ctx, await route.handle(ask))
  }

const demand = ({ type, action, path }: Needs, ask: Ask): void => {
  const { permissions } = ask.credential
  if (permissions.allows(type, action)) return
  const paths = path?.(ask.params, ask) ?? []
  if (paths.some((part) => permissions.allows(type, action, part))) return
  throw new AppError('forbidden', `The credential lacks the permission ${type}:${paths[0] ?? '*'} ${action}`)
}

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
