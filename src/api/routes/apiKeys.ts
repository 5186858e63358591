import Type from 'typebox'
import { compilePermissions, FULL_ACCESS } from '../../access/permissions.ts'
import { pastOf } from '../../commands/audit/past.ts'
import { apiKeyThen, envThen } from '../../commands/audit/pastTenants.ts'
import { changeApiKey } from '../../commands/credentials/changeApiKey.ts'
import { createApiKey } from '../../commands/credentials/createApiKey.ts'
import { deleteApiKey } from '../../commands/credentials/deleteApiKey.ts'
import { rotateApiKey } from '../../commands/credentials/rotateApiKey.ts'
import { findApiKey, findEnv } from '../../commands/orgs/findTenant.ts'
import type { ApiKeyDoc } from '../../projections/tenants.ts'
import { AsOfPageQuery, AsOfQuery, listPastPage } from '../asOf.ts'
import { listOf } from '../paging.ts'
import { fieldsOf } from '../present/fieldsOf.ts'
import { item, none, operatorRoute } from '../route.ts'
import { ApiKey, NewApiKey, Permissions, RotatedApiKey } from '../schemas.ts'

const tag = 'Operator'

const Name = Type.String({ minLength: 1, maxLength: 200 })

/** Up to a year: a key that must last longer has no end. */
const SECONDS = { minimum: 0, maximum: 31_536_000 }
const Seconds = Type.Integer(SECONDS)

const presentKey = (doc: ApiKeyDoc) => ({
  ...fieldsOf(ApiKey, doc),
  expires_at: doc.expires_at ?? null,
  access: compilePermissions(doc.permissions).beyond(FULL_ACCESS) === undefined ? 'full' : 'restricted',
})

export const apiKeyRoutes = [
  operatorRoute({
    tag,
    method: 'POST',
    path: '/operator/envs/:env_id/api-keys',
    operationId: 'createApiKey',
    summary: 'Create an API key',
    description: 'Without `permissions` the key has full access (`{"*:*": ["*"]}`).',
    body: Type.Object({ name: Name, permissions: Type.Optional(Permissions) }),
    example: {
      name: 'ci',
      permissions: { 'build:*': ['create', 'read', 'execute'], 'project:*': ['create'] }, // those of svc deploy
    },
    reply: { kind: 'item', status: 201, schema: NewApiKey },
    handle: async ({ deps, params: { env_id }, body, operator }) => {
      const { api_key_id, token } = await createApiKey(deps, { ...body, env_id }, operator)
      return item({ ...presentKey(await findApiKey(deps, api_key_id)), token }, 201)
    },
  }),

  operatorRoute({
    tag,
    method: 'GET',
    path: '/operator/envs/:env_id/api-keys',
    operationId: 'listApiKeys',
    summary: 'List the API keys of an environment',
    query: AsOfPageQuery,
    reply: { kind: 'list', schema: ApiKey },
    handle: async ({ deps, params, query: { as_of, ...page } }) => {
      if (as_of !== undefined) {
        const { env_id } = await envThen(deps, params.env_id, as_of)
        return listPastPage(await (await pastOf(deps, as_of)).apiKeyPage(env_id, page), page, presentKey)
      }
      const { env_id } = await findEnv(deps, params.env_id)
      return listOf(deps.views, 'apiKeys', { equal: { env_id }, ...page }, presentKey)
    },
  }),

  operatorRoute({
    tag,
    method: 'POST',
    path: '/operator/api-keys/:api_key_id/rotate',
    operationId: 'rotateApiKey',
    summary: 'Replace an API key',
    description:
      'Creates a key with the same environment, name and permissions. The former key, its sessions and its service keys ' +
      'expire after `overlap_s` seconds, or at its own earlier expiry, on every node, and their streams end.',
    body: Type.Object({ overlap_s: Type.Optional(Type.Integer({ ...SECONDS, default: 0 })) }),
    example: { overlap_s: 3600 },
    errors: ['conflict'],
    reply: { kind: 'item', status: 201, schema: RotatedApiKey },
    handle: async ({ deps, params, body: { overlap_s = 0 }, operator }) => {
      const { api_key_id, token } = await rotateApiKey(deps, { ...params, overlap_s }, operator)
      const former = presentKey(await findApiKey(deps, params.api_key_id))
      return item({ ...presentKey(await findApiKey(deps, api_key_id)), token, former }, 201)
    },
  }),

  operatorRoute({
    tag,
    method: 'GET',
    path: '/operator/api-keys/:api_key_id',
    operationId: 'getApiKey',
    summary: 'Get an API key',
    query: AsOfQuery,
    reply: { kind: 'item', schema: ApiKey },
    handle: async ({ deps, params: { api_key_id }, query: { as_of } }) =>
      item(
        presentKey(
          as_of === undefined
            ? await findApiKey(deps, api_key_id)
            : await apiKeyThen(deps, api_key_id, as_of),
        ),
      ),
  }),

  operatorRoute({
    tag,
    method: 'PATCH',
    path: '/operator/api-keys/:api_key_id',
    operationId: 'updateApiKey',
    summary: 'Change an API key',
    description:
      'Takes effect at once on every node, also for the sessions and service keys of the key. Streams that they no ' +
      'longer permit are closed.',
    body: Type.Object(
      {
        enabled: Type.Optional(Type.Boolean()),
        name: Type.Optional(Name),
        permissions: Type.Optional(Permissions),
        expires_in: Type.Optional(
          Type.Union([Seconds, Type.Null()], {
            description: 'The key expires in this number of seconds; null: it does not expire',
          }),
        ),
      },
      { minProperties: 1 },
    ),
    example: { enabled: false },
    reply: { kind: 'item', schema: ApiKey },
    handle: async ({ deps, params: { api_key_id }, body, operator }) => {
      await changeApiKey(deps, { ...body, api_key_id }, operator.cause)
      return item(presentKey(await findApiKey(deps, api_key_id)))
    },
  }),

  operatorRoute({
    tag,
    method: 'DELETE',
    path: '/operator/api-keys/:api_key_id',
    operationId: 'deleteApiKey',
    summary: 'Delete an API key',
    description: 'Also revokes the sessions and service keys that the key has issued.',
    reply: { kind: 'none' },
    handle: async ({ deps, params: { api_key_id }, operator }) => {
      await deleteApiKey(deps, { api_key_id }, operator.cause)
      return none
    },
  }),
]
