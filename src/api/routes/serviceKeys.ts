import Type from 'typebox'
import { SERVICE_KEY_TYPES } from '../../access/permissions.ts'
import { pastOf } from '../../commands/audit/past.ts'
import { issueServiceKey, LONGEST_SERVICE_KEY_S } from '../../commands/credentials/issueServiceKey.ts'
import { revokeServiceKey } from '../../commands/credentials/revokeServiceKey.ts'
import { revokeServiceKeys } from '../../commands/credentials/revokeServiceKeys.ts'
import { AppError } from '../../errors.ts'
import { type ServiceKeyDoc, serviceKeys } from '../../projections/issued.ts'
import { unsealMetadata } from '../../secrets/serviceKeyMetadata.ts'
import { type Ask, item, none, route } from '../route.ts'
import { AsOfPageQuery, AsOfQuery, listPast } from '../asOf.ts'
import { listOf } from '../paging.ts'
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

/** The service keys that the API key had issued by then. Their uses are no part of a past state. */
const pastKeys = async ({ deps, credential }: Pick<Ask, 'deps' | 'credential'>, as_of: string) =>
  (await pastOf(deps, as_of)).issued(serviceKeys, credential.api_key_id)

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
    errors: ['permission_escalation', 'quota_exceeded'],
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
    query: AsOfPageQuery,
    reply: { kind: 'list', schema: ServiceKey },
    handle: async (ask) => {
      const {
        query: { as_of, ...page },
        credential: { api_key_id },
        deps,
      } = ask
      return as_of === undefined
        ? listOf(deps.views, 'serviceKeys', { equal: { api_key_id }, ...page }, (key) => present(key, deps))
        : listPast(await pastKeys(ask, as_of), page, (key) => present(key, deps))
    },
  }),

  route({
    method: 'GET',
    path: '/v1/service-keys/:service_key_id',
    operationId: 'getServiceKey',
    summary: 'Get a service key of the calling API key',
    tag,
    needs: { type: 'key', action: 'read' },
    query: AsOfQuery,
    reply: { kind: 'item', schema: ServiceKey },
    handle: async (ask) => {
      const { as_of } = ask.query
      const { service_key_id } = ask.params
      const key =
        as_of === undefined
          ? await keyOf(ask, service_key_id)
          : (await pastKeys(ask, as_of)).find((each) => each.service_key_id === service_key_id)
      if (!key) throw new AppError('not_found', `There was no service key ${service_key_id} then`)
      return item(await present(key, ask.deps))
    },
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
