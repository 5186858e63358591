import Type from 'typebox'
import { compilePermissions, FULL_ACCESS } from '../../access/permissions.ts'
import { changeApiKey } from '../../commands/credentials/changeApiKey.ts'
import { changeOrg } from '../../commands/orgs/changeOrg.ts'
import { createApiKey } from '../../commands/credentials/createApiKey.ts'
import { createEnv } from '../../commands/orgs/createEnv.ts'
import { createOrg } from '../../commands/orgs/createOrg.ts'
import { deleteApiKey } from '../../commands/credentials/deleteApiKey.ts'
import { findApiKey, findEnv, findOrg } from '../../commands/orgs/findTenant.ts'
import { LABEL_PATTERN } from '../../commands/orgs/label.ts'
import { Plan } from '../../events/org.ts'
import type { ApiKeyDoc, EnvDoc, OrgDoc } from '../../projections/tenants.ts'
import { operatorCause } from '../http/operator.ts'
import { listOf } from '../listOf.ts'
import { item, none, route } from '../route.ts'
import { ApiKey, Environment, NewApiKey, Org, PageQuery, Permissions } from '../schemas.ts'

const shared = { tag: 'Operator', needs: null, operator: true } as const

/** Names of organizations and environments are part of webhook URLs. */
const Label = Type.String({
  pattern: LABEL_PATTERN,
  description: 'Lower-case letters, digits and hyphens, as in a host name',
})
const Name = Type.String({ minLength: 1, maxLength: 200 })

const presentOrg = ({ order: _, ...org }: OrgDoc) => org
const presentEnv = ({ env_id, org_id, name, active }: EnvDoc) => ({ env_id, org_id, name, active })
const presentKey = ({ mac: _, order: __, permissions, ...key }: ApiKeyDoc) => ({
  ...key,
  permissions,
  access: compilePermissions(permissions).beyond(FULL_ACCESS) === undefined ? 'full' : 'restricted',
})

export const operatorRoutes = [
  route({
    ...shared,
    method: 'POST',
    path: '/operator/orgs',
    operationId: 'createOrg',
    summary: 'Create an organization',
    body: Type.Object({ slug: Label, name: Type.Optional(Name), plan: Plan }),
    example: { slug: 'acme', name: 'Acme', plan: 'pro' },
    errors: ['conflict'],
    reply: { kind: 'item', status: 201, schema: Org },
    handle: async ({ deps, body, request_id }) => {
      const { org_id } = await createOrg(deps, body, operatorCause(request_id))
      return item(presentOrg(await findOrg(deps, org_id)), 201)
    },
  }),

  route({
    ...shared,
    method: 'GET',
    path: '/operator/orgs',
    operationId: 'listOrgs',
    summary: 'List organizations',
    query: PageQuery,
    reply: { kind: 'list', schema: Org },
    handle: ({ query, deps: { views } }) => listOf(views, 'orgs', { equal: {}, ...query }, presentOrg),
  }),

  route({
    ...shared,
    method: 'PATCH',
    path: '/operator/orgs/:org',
    operationId: 'updateOrg',
    summary: 'Change an organization',
    description: 'A new plan applies from the next request on.',
    body: Type.Object({
      plan: Type.Optional(Plan),
      name: Type.Optional(Name),
      team_members: Type.Optional(Type.Integer({ minimum: 0, maximum: 1e6 })),
    }),
    example: { plan: 'scale' },
    reply: { kind: 'item', schema: Org },
    handle: async ({ deps, params: { org }, body, request_id }) => {
      const { org_id } = await changeOrg(deps, { ...body, org }, operatorCause(request_id))
      return item(presentOrg(await findOrg(deps, org_id)))
    },
  }),

  route({
    ...shared,
    method: 'POST',
    path: '/operator/orgs/:org/envs',
    operationId: 'createEnvironment',
    summary: 'Create an environment',
    body: Type.Object({ name: Label }),
    example: { name: 'production' },
    errors: ['conflict'],
    reply: { kind: 'item', status: 201, schema: Environment },
    handle: async ({ deps, params: { org }, body: { name }, request_id }) => {
      const { env_id } = await createEnv(deps, { org, name }, operatorCause(request_id))
      return item(presentEnv(await findEnv(deps, env_id)), 201)
    },
  }),

  route({
    ...shared,
    method: 'GET',
    path: '/operator/orgs/:org/envs',
    operationId: 'listEnvironments',
    summary: 'List the environments of an organization',
    query: PageQuery,
    reply: { kind: 'list', schema: Environment },
    handle: async ({ deps, params, query }) => {
      const { org_id } = await findOrg(deps, params.org)
      return listOf(deps.views, 'envs', { equal: { org_id }, ...query }, presentEnv)
    },
  }),

  route({
    ...shared,
    method: 'POST',
    path: '/operator/envs/:env_id/api-keys',
    operationId: 'createApiKey',
    summary: 'Create an API key',
    description: 'Without `permissions` the key has full access (`{"*:*": ["*"]}`).',
    body: Type.Object({ name: Name, permissions: Type.Optional(Permissions) }),
    example: { name: 'ci', permissions: { 'build:*': ['create', 'execute'] } },
    reply: { kind: 'item', status: 201, schema: NewApiKey },
    handle: async ({ deps, params: { env_id }, body, request_id, caller: { newId } }) => {
      const caller = { cause: operatorCause(request_id), newId }
      const { api_key_id, token } = await createApiKey(deps, { ...body, env_id }, caller)
      return item({ ...presentKey(await findApiKey(deps, api_key_id)), token }, 201)
    },
  }),

  route({
    ...shared,
    method: 'GET',
    path: '/operator/envs/:env_id/api-keys',
    operationId: 'listApiKeys',
    summary: 'List the API keys of an environment',
    query: PageQuery,
    reply: { kind: 'list', schema: ApiKey },
    handle: async ({ deps, params, query }) => {
      const { env_id } = await findEnv(deps, params.env_id)
      return listOf(deps.views, 'apiKeys', { equal: { env_id }, ...query }, presentKey)
    },
  }),

  route({
    ...shared,
    method: 'PATCH',
    path: '/operator/api-keys/:api_key_id',
    operationId: 'updateApiKey',
    summary: 'Change an API key',
    description:
      'Takes effect at once on every node, also for the sessions and service keys of the key. Streams that they no ' +
      'longer permit are closed.',
    body: Type.Object({
      enabled: Type.Optional(Type.Boolean()),
      name: Type.Optional(Name),
      permissions: Type.Optional(Permissions),
    }),
    example: { enabled: false },
    reply: { kind: 'item', schema: ApiKey },
    handle: async ({ deps, params: { api_key_id }, body, request_id }) => {
      await changeApiKey(deps, { ...body, api_key_id }, operatorCause(request_id))
      return item(presentKey(await findApiKey(deps, api_key_id)))
    },
  }),

  route({
    ...shared,
    method: 'DELETE',
    path: '/operator/api-keys/:api_key_id',
    operationId: 'deleteApiKey',
    summary: 'Delete an API key',
    description: 'Also revokes the sessions and service keys that the key has issued.',
    reply: { kind: 'none' },
    handle: async ({ deps, params: { api_key_id }, request_id }) => {
      await deleteApiKey(deps, { api_key_id }, operatorCause(request_id))
      return none
    },
  }),
]
