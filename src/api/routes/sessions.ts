import Type from 'typebox'
import { pastOf } from '../../commands/audit/past.ts'
import { clock, isoOf } from '../../clock.ts'
import {
  DEFAULT_SESSION_S,
  issueSession,
  LONGEST_SESSION_S,
} from '../../commands/credentials/issueSession.ts'
import { revokeSession } from '../../commands/credentials/revokeSession.ts'
import { revokeSessions } from '../../commands/credentials/revokeSessions.ts'
import { AppError } from '../../errors.ts'
import { type SessionDoc, sessions } from '../../projections/issued.ts'
import { type Ask, item, list, none, route } from '../route.ts'
import { AsOfPageQuery, listPast } from '../asOf.ts'
import { NewSession, Permissions, RevokedCount, Session } from '../schemas.ts'
import { ISSUING, MAX_ISSUE_BYTES, REVOKED } from './issuing.ts'

const tag = 'Sessions'

const present = ({ session_id, permissions, metadata = null, expires_at, created_at }: SessionDoc) => ({
  session_id,
  permissions,
  metadata,
  expires_at,
  created_at,
})

/** Sessions that are read at once: all of them, with their metadata, would need too much memory. */
const BATCH = 50

/** One page of the sessions that are valid now, newest first, and their number: at most a thousand. */
const activeOf = async (
  { deps: { views }, credential }: Pick<Ask, 'deps' | 'credential'>,
  { limit, offset }: { readonly limit: number; readonly offset: number },
) => {
  await views.settled('sessions')
  const query = {
    equal: { api_key_id: credential.api_key_id },
    sort: 'expires_at',
    from: isoOf(clock.now() + 1),
    limit: BATCH,
  }
  const active: Pick<SessionDoc, 'session_id' | 'order'>[] = []
  for (let at = 0; ; at += BATCH) {
    const { items } = await views.sessions.find({ ...query, offset: at })
    for (const { session_id, order } of items) active.push({ session_id, order })
    if (items.length < BATCH) break
  }
  const ids = active
    .toSorted((a, b) => (a.order < b.order ? 1 : -1))
    .slice(offset, offset + limit)
    .map(({ session_id }) => session_id)
  const docs = await views.sessions.getMany(ids)
  return { total: active.length, items: ids.flatMap((id) => docs.get(id) ?? []) }
}

/** The sessions that were valid then. */
const pastSessions = async ({ deps, credential }: Pick<Ask, 'deps' | 'credential'>, as_of: string) => {
  const past = await pastOf(deps, as_of)
  const time = await past.time()
  const then = await past.issued(sessions, credential.api_key_id)
  return then.filter(({ expires_at }) => expires_at > time)
}

export const sessionRoutes = [
  route({
    method: 'POST',
    path: '/v1/sessions',
    operationId: 'createSession',
    summary: 'Create a session',
    description: ISSUING,
    tag,
    needs: { type: 'session', action: 'create' },
    maxBodyBytes: MAX_ISSUE_BYTES,
    body: Type.Object({
      permissions: Permissions,
      metadata: Type.Optional(Type.Unknown({ description: 'Any JSON' })),
      expires_in: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: LONGEST_SESSION_S,
          default: DEFAULT_SESSION_S,
          description: 'Lifetime in seconds',
        }),
      ),
    }),
    example: { permissions: { 'stream:*': ['read'] }, expires_in: 600 },
    errors: ['permission_escalation', 'session_limit_exceeded'],
    reply: { kind: 'item', status: 201, schema: NewSession },
    handle: async ({ body, credential: issuer, deps, caller }) => {
      const { session_id, token } = await issueSession(deps, { ...body, issuer }, caller)
      await deps.views.settled('sessions')
      const doc = await deps.views.sessions.get(session_id)
      if (!doc) throw new AppError('conflict', 'The session was revoked in the meantime')
      return item({ ...present(doc), token }, 201)
    },
  }),

  route({
    method: 'GET',
    path: '/v1/sessions',
    operationId: 'listSessions',
    summary: 'List the active sessions of the calling API key',
    tag,
    needs: { type: 'session', action: 'read' },
    query: AsOfPageQuery,
    reply: { kind: 'list', schema: Session },
    handle: async (ask) => {
      const { as_of, limit, offset } = ask.query
      if (as_of !== undefined) return listPast(await pastSessions(ask, as_of), { limit, offset }, present)
      const { items, total } = await activeOf(ask, { limit, offset })
      return list(items.map(present), total, ask.query)
    },
  }),

  route({
    method: 'DELETE',
    path: '/v1/sessions/:session_id',
    operationId: 'revokeSession',
    summary: 'Revoke a session of the calling API key',
    description: REVOKED,
    tag,
    needs: { type: 'session', action: 'delete' },
    reply: { kind: 'none' },
    handle: async ({ deps, credential: { api_key_id }, params: { session_id }, caller }) => {
      await revokeSession(deps, { api_key_id, session_id }, caller.cause)
      return none
    },
  }),

  route({
    method: 'DELETE',
    path: '/v1/sessions',
    operationId: 'revokeSessions',
    summary: 'Revoke every session of the calling API key',
    tag,
    needs: { type: 'session', action: 'delete' },
    reply: { kind: 'item', schema: RevokedCount },
    handle: async ({ deps, credential: { api_key_id }, caller }) =>
      item({ revoked_count: await revokeSessions(deps, { api_key_id }, caller.cause) }),
  }),
]
