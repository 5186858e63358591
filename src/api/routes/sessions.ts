import Type from 'typebox'
import { clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { streamOf } from '../../events/streams.ts'
import { newId } from '../../ids.ts'
import { checkPermissions } from '../../access/permissions.ts'
import type { SessionDoc } from '../../projections/issued.ts'
import { newIssuedToken } from '../../access/tokens.ts'
import { type Ask, item, list, none, route } from '../route.ts'
import { NewSession, PageQuery, Permissions, RevokedCount, Session } from '../schemas.ts'
import { causeOf, expiryOf, isoAt, MAX_ISSUE_BYTES, mayIssue } from './issuing.ts'

const tag = 'Sessions'

const present = ({ session_id, permissions, metadata = null, expires_at, created_at }: SessionDoc) => ({
  session_id,
  permissions,
  metadata,
  expires_at,
  created_at,
})

/** All that hold now, newest first: at most a thousand. */
const activeOf = async ({ deps: { views }, credential }: Pick<Ask, 'deps' | 'credential'>) => {
  await views.settled('sessions')
  const { items } = await views.sessions.find({
    equal: { api_key_id: credential.api_key_id },
    sort: 'expires_at',
    from: isoAt(clock.now() + 1),
    limit: 1000,
    offset: 0,
  })
  return items.toSorted((a, b) => (a.order < b.order ? 1 : -1))
}

export const sessionRoutes = [
  route({
    method: 'POST',
    path: '/v1/sessions',
    summary: 'Create a session',
    description: 'Only an API key can, and only with permissions that it has itself.',
    tag,
    needs: { type: 'session', action: 'create' },
    maxBodyBytes: MAX_ISSUE_BYTES,
    body: Type.Object({
      permissions: Permissions,
      metadata: Type.Optional(Type.Unknown({ description: 'Any JSON' })),
      expires_in: Type.Optional(
        Type.Integer({ minimum: 1, maximum: 86_400, default: 3600, description: 'Seconds' }),
      ),
    }),
    example: { permissions: { 'stream:*': ['read'] }, expires_in: 600 },
    errors: ['permission_escalation', 'session_limit_exceeded'],
    reply: { kind: 'item', status: 201, schema: NewSession },
    handle: async (ask) => {
      const { body, credential, deps } = ask
      mayIssue(credential, body.permissions, checkPermissions)
      const { permissions, metadata, expires_in = 3600 } = body
      const { api_key_id } = credential
      const session_id = newId()
      const { token, secret } = newIssuedToken('session', session_id)
      const expires_at = expiryOf(expires_in)
      await deps.aggregates.issued.handle(
        streamOf.issued(api_key_id),
        {
          type: 'CreateSession',
          api_key_id,
          now: clock.iso(),
          session: {
            session_id,
            mac: deps.keyring.macOf(secret),
            permissions,
            ...(metadata !== undefined && { metadata }),
            expires_at,
          },
        },
        causeOf(ask),
      )
      await deps.views.settled('sessions')
      const doc = await deps.views.sessions.get(session_id)
      if (!doc) throw new AppError('conflict', 'The session was revoked meanwhile')
      return item({ ...present(doc), token }, 201)
    },
  }),

  route({
    method: 'GET',
    path: '/v1/sessions',
    summary: 'List the active sessions of the calling API key',
    tag,
    needs: { type: 'session', action: 'read' },
    query: PageQuery,
    reply: { kind: 'list', schema: Session },
    handle: async (ask) => {
      const { limit, offset } = ask.query
      const active = await activeOf(ask)
      return list(active.slice(offset, offset + limit).map(present), active.length, ask.query)
    },
  }),

  route({
    method: 'DELETE',
    path: '/v1/sessions/:session_id',
    summary: 'Revoke a session of the calling API key',
    description: 'From the next request on it is refused, on every node, and its streams end.',
    tag,
    needs: { type: 'session', action: 'delete' },
    reply: { kind: 'none' },
    handle: async (ask) => {
      const { deps, credential, params } = ask
      const { api_key_id } = credential
      const { session_id } = params
      await deps.aggregates.issued.handle(
        streamOf.issued(api_key_id),
        { type: 'RevokeSession', api_key_id, session_id, now: clock.iso() },
        causeOf(ask),
      )
      deps.authenticator.ended(api_key_id, session_id)
      return none
    },
  }),

  route({
    method: 'DELETE',
    path: '/v1/sessions',
    summary: 'Revoke every session of the calling API key',
    tag,
    needs: { type: 'session', action: 'delete' },
    reply: { kind: 'item', schema: RevokedCount },
    handle: async (ask) => {
      const { api_key_id } = ask.credential
      const { events } = await ask.deps.aggregates.issued.handle(
        streamOf.issued(api_key_id),
        { type: 'RevokeSessions', api_key_id, now: clock.iso() },
        causeOf(ask),
      )
      ask.deps.authenticator.ended(api_key_id)
      const counts = events.map((event) => (event.type === 'SessionsEnded' ? event.session_ids.length : 0))
      return item({ revoked_count: counts.reduce((sum, count) => sum + count, 0) })
    },
  }),
]
