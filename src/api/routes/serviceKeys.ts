import Type from 'typebox'
import { clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { streamOf } from '../../events/streams.ts'
import { newId } from '../../ids.ts'
import { checkServiceKeyPermissions } from '../../access/permissions.ts'
import type { ServiceKeyDoc } from '../../projections/issued.ts'
import { newIssuedToken } from '../../access/tokens.ts'
import { openMetadata, sealMetadata } from '../../secrets/serviceKeyMetadata.ts'
import { type Ask, item, list, none, route } from '../route.ts'
import { NewServiceKey, PageQuery, RevokedCount, ServiceKey, ServiceKeyPermissions } from '../schemas.ts'
import { causeOf, expiryOf, MAX_ISSUE_BYTES, mayIssue } from './issuing.ts'

const tag = 'Service keys'

/** A hundred years: dates stay dates. */
const LONGEST_S = 3_153_600_000

const present = async (
  { mac: _, order: __, api_key_id: ___, env_id, metadata, ...key }: ServiceKeyDoc,
  { deps: { keyring } }: Pick<Ask, 'deps'>,
) => {
  const { service_key_id } = key
  return { ...key, metadata: await openMetadata(keyring, { env_id, service_key_id }, metadata) }
}

/** A service key of the calling API key; any other does not exist. */
const keyOf = async (
  { deps: { views }, credential }: Ask,
  service_key_id: string,
): Promise<ServiceKeyDoc> => {
  await views.settled('serviceKeys')
  const key = await views.serviceKeys.get(service_key_id)
  if (key?.api_key_id !== credential.api_key_id)
    throw new AppError('not_found', `No service key ${service_key_id}`)
  return key
}

export const serviceKeyRoutes = [
  route({
    method: 'POST',
    path: '/v1/service-keys',
    summary: 'Create a service key',
    description:
      'Only an API key can, and only with permissions that it has itself, of the types mcp, webhook, stream, event and run.',
    tag,
    needs: { type: 'key', action: 'create' },
    maxBodyBytes: MAX_ISSUE_BYTES,
    body: Type.Object({
      name: Type.Optional(Type.String({ maxLength: 200 })),
      description: Type.Optional(Type.String({ maxLength: 2000 })),
      permissions: ServiceKeyPermissions,
      metadata: Type.Optional(
        Type.Unknown({ description: 'Any JSON; encrypted at rest, told to webhooks that the key calls' }),
      ),
      expires_in: Type.Optional(
        Type.Union([Type.Integer({ minimum: 1, maximum: LONGEST_S }), Type.Null()], {
          description: 'Seconds; null or omitted: it never expires',
        }),
      ),
    }),
    example: { name: 'partner', permissions: { 'webhook:orders': ['execute'] }, metadata: { partner: 7 } },
    errors: ['permission_escalation'],
    reply: { kind: 'item', status: 201, schema: NewServiceKey },
    handle: async (ask) => {
      const { body, credential, deps } = ask
      mayIssue(credential, body.permissions, checkServiceKeyPermissions)
      const { name = '', description = '', permissions, metadata, expires_in = null } = body
      const { api_key_id, env_id } = credential
      const service_key_id = newId()
      const { token, secret } = newIssuedToken('service-key', service_key_id)
      await deps.aggregates.issued.handle(
        streamOf.issued(api_key_id),
        {
          type: 'CreateServiceKey',
          api_key_id,
          now: clock.iso(),
          key: {
            service_key_id,
            mac: deps.keyring.macOf(secret),
            name,
            description,
            permissions,
            ...(metadata !== undefined && {
              metadata: await sealMetadata(deps.keyring, { env_id, service_key_id }, metadata),
            }),
            expires_at: expires_in === null ? null : expiryOf(expires_in),
          },
        },
        causeOf(ask),
      )
      return item({ ...(await present(await keyOf(ask as Ask, service_key_id), ask)), token }, 201)
    },
  }),

  route({
    method: 'GET',
    path: '/v1/service-keys',
    summary: 'List the service keys of the calling API key',
    description: 'Also those that were revoked or have expired.',
    tag,
    needs: { type: 'key', action: 'read' },
    query: PageQuery,
    reply: { kind: 'list', schema: ServiceKey },
    handle: async (ask) => {
      const { query, credential, deps } = ask
      await deps.views.settled('serviceKeys')
      const { items, total } = await deps.views.serviceKeys.find({
        equal: { api_key_id: credential.api_key_id },
        sort: 'order',
        descending: true,
        ...query,
      })
      return list(await Promise.all(items.map((key) => present(key, ask))), total, query)
    },
  }),

  route({
    method: 'GET',
    path: '/v1/service-keys/:service_key_id',
    summary: 'Get a service key of the calling API key',
    tag,
    needs: { type: 'key', action: 'read' },
    reply: { kind: 'item', schema: ServiceKey },
    handle: async (ask) => item(await present(await keyOf(ask as Ask, ask.params.service_key_id), ask)),
  }),

  route({
    method: 'DELETE',
    path: '/v1/service-keys/:service_key_id',
    summary: 'Revoke a service key of the calling API key',
    description:
      'From the next request on it is refused, on every node, and its streams end. It stays visible.',
    tag,
    needs: { type: 'key', action: 'delete' },
    reply: { kind: 'none' },
    handle: async (ask) => {
      const { deps, credential, params } = ask
      const { api_key_id } = credential
      const { service_key_id } = params
      await deps.aggregates.issued.handle(
        streamOf.issued(api_key_id),
        { type: 'RevokeServiceKey', api_key_id, service_key_id, now: clock.iso() },
        causeOf(ask),
      )
      deps.authenticator.ended(api_key_id, service_key_id)
      return none
    },
  }),

  route({
    method: 'DELETE',
    path: '/v1/service-keys',
    summary: 'Revoke every service key of the calling API key',
    tag,
    needs: { type: 'key', action: 'delete' },
    reply: { kind: 'item', schema: RevokedCount },
    handle: async (ask) => {
      const { api_key_id } = ask.credential
      const { events } = await ask.deps.aggregates.issued.handle(
        streamOf.issued(api_key_id),
        { type: 'RevokeServiceKeys', api_key_id, now: clock.iso() },
        causeOf(ask),
      )
      ask.deps.authenticator.ended(api_key_id)
      const counts = events.map((event) =>
        event.type === 'ServiceKeysRevoked' ? event.service_key_ids.length : 0,
      )
      return item({ revoked_count: counts.reduce((sum, count) => sum + count, 0) })
    },
  }),
]
