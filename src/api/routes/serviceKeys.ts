import Type from 'typebox'
import { SERVICE_KEY_TYPES } from '../../access/permissions.ts'
import { issueServiceKey, LONGEST_SERVICE_KEY_S } from '../../commands/credentials/issueServiceKey.ts'
import { revokeServiceKey } from '../../commands/credentials/revokeServiceKey.ts'
import { revokeServiceKeys } from '../../commands/credentials/revokeServiceKeys.ts'
import { AppError } from '../../errors.ts'
import type { ServiceKeyDoc } from '../../projections/issued.ts'
import { unsealMetadata } from '../../secrets/serviceKeyMetadata.ts'
import { type Ask, item, none, route } from '../route.ts'
import { listOf, PageQuery } from '../paging.ts'
import { fieldsOf } from '../present/fieldsOf.ts'
import { NewServiceKey, RevokedCount, ServiceKey, ServiceKeyPermissions } from '../schemas.ts'
import { ISSUING, MAX_ISSUE_BYTES, REVOKED } from './issuing.ts'

const tag = 'Service keys'

const present = async (doc: ServiceKeyDoc, { keyring }: Pick<Ask['deps'], 'keyring'>) => {
  const { env_id, service_key_id, metadata } = doc
  return {
    ...fieldsOf(ServiceKey, doc),
    metadata: await unsealMetadata(keyring, { env_id, service_key_id }, metadata),
  }
}

/** A service key of the calling API key; any other does not exist. */
const keyOf = async (
  { deps: { views }, credential }: Pick<Ask, 'deps' | 'credential'>,
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
    operationId: 'createServiceKey',
    summary: 'Create a service key',
    description: `${ISSUING} The resource types are limited to ${SERVICE_KEY_TYPES.join(', ')}.`,
    tag,
    needs: { type: 'key', action: 'create' },
    maxBodyBytes: MAX_ISSUE_BYTES,
    body: Type.Object({
      name: Type.Optional(Type.String({ maxLength: 200 })),
      description: Type.Optional(Type.String({ maxLength: 2000 })),
      permissions: ServiceKeyPermissions,
      metadata: Type.Optional(
        Type.Unknown({
          description: 'Any JSON; encrypted at rest, and passed to webhooks that the key calls',
        }),
      ),
      expires_in: Type.Optional(
        Type.Union([Type.Integer({ minimum: 1, maximum: LONGEST_SERVICE_KEY_S }), Type.Null()], {
          description: 'Lifetime in seconds. If it is null or omitted, the key never expires',
        }),
      ),
    }),
    example: { name: 'partner', permissions: { 'webhook:orders': ['execute'] }, metadata: { partner: 7 } },
    errors: ['permission_escalation'],
    reply: { kind: 'item', status: 201, schema: NewServiceKey },
    handle: async (ask) => {
      const { body, credential: issuer, deps, caller } = ask
      const { service_key_id, token } = await issueServiceKey(deps, { ...body, issuer }, caller)
      return item({ ...(await present(await keyOf(ask, service_key_id), deps)), token }, 201)
    },
  }),

  route({
    method: 'GET',
    path: '/v1/service-keys',
    operationId: 'listServiceKeys',
    summary: 'List the service keys of the calling API key',
    description: 'Includes revoked and expired keys.',
    tag,
    needs: { type: 'key', action: 'read' },
    query: PageQuery,
    reply: { kind: 'list', schema: ServiceKey },
    handle: ({ query, credential: { api_key_id }, deps }) =>
      listOf(deps.views, 'serviceKeys', { equal: { api_key_id }, ...query }, (key) => present(key, deps)),
  }),

  route({
    method: 'GET',
    path: '/v1/service-keys/:service_key_id',
    operationId: 'getServiceKey',
    summary: 'Get a service key of the calling API key',
    tag,
    needs: { type: 'key', action: 'read' },
    reply: { kind: 'item', schema: ServiceKey },
    handle: async (ask) => item(await present(await keyOf(ask, ask.params.service_key_id), ask.deps)),
  }),

  route({
    method: 'DELETE',
    path: '/v1/service-keys/:service_key_id',
    operationId: 'revokeServiceKey',
    summary: 'Revoke a service key of the calling API key',
    description: `${REVOKED} The key remains visible.`,
    tag,
    needs: { type: 'key', action: 'delete' },
    reply: { kind: 'none' },
    handle: async ({ deps, credential: { api_key_id }, params: { service_key_id }, caller }) => {
      await revokeServiceKey(deps, { api_key_id, service_key_id }, caller.cause)
      return none
    },
  }),

  route({
    method: 'DELETE',
    path: '/v1/service-keys',
    operationId: 'revokeServiceKeys',
    summary: 'Revoke every service key of the calling API key',
    tag,
    needs: { type: 'key', action: 'delete' },
    reply: { kind: 'item', schema: RevokedCount },
    handle: async ({ deps, credential: { api_key_id }, caller }) =>
      item({ revoked_count: await revokeServiceKeys(deps, { api_key_id }, caller.cause) }),
  }),
]
