import Type from 'typebox'
import { clock } from '../../clock.ts'
import { streamOf } from '../../events/streams.ts'
import { type Permissions as PermissionMap, Plan } from '../../events/org.ts'
import { AppError } from '../../errors.ts'
import { derivedId, isId, newId } from '../../ids.ts'
import { checkPermissions, compilePermissions } from '../../access/permissions.ts'
import type { ApiKeyDoc, EnvDoc, OrgDoc } from '../../projections/tenants.ts'
import { newApiToken, parseApiToken } from '../../access/tokens.ts'
import type { ApiDeps } from '../deps.ts'
import { type Ask, item, list, none, route } from '../route.ts'
import { ApiKey, Environment, NewApiKey, Org, PageQuery, Permissions } from '../schemas.ts'

const shared = { tag: 'Operator', needs: null, operator: true } as const

/** As DNS labels are: they stand in webhook URLs. */
const Label = Type.String({
  pattern: '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$',
  description: 'Lower-case letters, digits and hyphens, as in a host name',
})
const Name = Type.String({ minLength: 1, maxLength: 200 })

const FULL: PermissionMap = { '*:*': ['*'] }

const presentOrg = ({ order: _, ...org }: OrgDoc) => org
const presentEnv = ({ env_id, org_id, name, active }: EnvDoc) => ({ env_id, org_id, name, active })
const presentKey = ({ mac: _, order: __, permissions, ...key }: ApiKeyDoc) => ({
  ...key,
  permissions,
  access: compilePermissions(permissions).beyond(FULL) === undefined ? 'full' : 'restricted',
})

/** An organization by slug or id. */
const orgOf = async ({ views }: ApiDeps, slugOrId: string): Promise<OrgDoc> => {
  await views.settled('orgs')
  const found = isId(slugOrId)
    ? await views.orgs.get(slugOrId)
    : (await views.orgs.find({ equal: { slug: slugOrId }, sort: 'order', limit: 1, offset: 0 })).items[0]
  if (!found) throw new AppError('not_found', `No organization "${slugOrId}"`)
  return found
}

const envOf = async ({ views }: ApiDeps, env_id: string): Promise<EnvDoc> => {
  await views.settled('envs')
  const env = await views.envs.get(env_id)
  if (!env) throw new AppError('not_found', `No environment ${env_id}`)
  return env
}

const keyOf = async ({ views }: ApiDeps, api_key_id: string): Promise<ApiKeyDoc> => {
  await views.settled('apiKeys')
  const key = await views.apiKeys.get(api_key_id)
  if (!key) throw new AppError('not_found', `No API key ${api_key_id}`)
  return key
}

const causeOf = ({ request_id }: Pick<Ask, 'request_id'>, env_id?: string) => ({
  correlation_id: request_id,
  actor: 'operator',
  ...(env_id !== undefined && { env_id }),
})

export const operatorRoutes = [
  route({
    ...shared,
    method: 'POST',
    path: '/operator/orgs',
    summary: 'Create an organization',
    body: Type.Object({ slug: Label, name: Type.Optional(Name), plan: Plan }),
    example: { slug: 'acme', name: 'Acme', plan: 'pro' },
    errors: ['conflict'],
    reply: { kind: 'item', status: 201, schema: Org },
    handle: async (ask) => {
      const { slug, name = slug, plan } = ask.body
      // The id follows from the slug, so the first fact of the stream reserves it.
      const org_id = derivedId('org', slug)
      const { events } = await ask.deps.aggregates.tenants.handle(
        streamOf.org(org_id),
        { type: 'Create', fact: { type: 'OrgCreated', org_id, slug, name, plan } },
        causeOf(ask),
      )
      if (events.length === 0) throw new AppError('conflict', `slug: "${slug}" is taken`)
      return item(presentOrg(await orgOf(ask.deps, org_id)), 201)
    },
  }),

  route({
    ...shared,
    method: 'GET',
    path: '/operator/orgs',
    summary: 'List organizations',
    query: PageQuery,
    reply: { kind: 'list', schema: Org },
    handle: async ({ query, deps: { views } }) => {
      await views.settled('orgs')
      const { items, total } = await views.orgs.find({ equal: {}, sort: 'order', descending: true, ...query })
      return list(items.map(presentOrg), total, query)
    },
  }),

  route({
    ...shared,
    method: 'PATCH',
    path: '/operator/orgs/:org',
    summary: 'Change an organization',
    description: 'The plan holds from the next request on.',
    body: Type.Object({
      plan: Type.Optional(Plan),
      name: Type.Optional(Name),
      team_members: Type.Optional(Type.Integer({ minimum: 0, maximum: 1e6 })),
    }),
    example: { plan: 'scale' },
    reply: { kind: 'item', schema: Org },
    handle: async (ask) => {
      const { deps, body, params } = ask
      const { org_id } = await orgOf(deps, params.org)
      const { plan, name, team_members } = body
      await deps.aggregates.orgs.handle(
        streamOf.org(org_id),
        {
          type: 'ChangeOrg',
          org_id,
          changes: {
            ...(plan !== undefined && { plan }),
            ...(name !== undefined && { name }),
            ...(team_members !== undefined && { team_members }),
          },
        },
        causeOf(ask),
      )
      return item(presentOrg(await orgOf(deps, org_id)))
    },
  }),

  route({
    ...shared,
    method: 'POST',
    path: '/operator/orgs/:org/envs',
    summary: 'Create an environment',
    body: Type.Object({ name: Label }),
    example: { name: 'production' },
    errors: ['conflict'],
    reply: { kind: 'item', status: 201, schema: Environment },
    handle: async (ask) => {
      const { deps, params, body } = ask
      const { org_id, slug } = await orgOf(deps, params.org)
      const env_id = derivedId('env', slug, body.name)
      const { events } = await deps.aggregates.tenants.handle(
        streamOf.env(env_id),
        { type: 'Create', fact: { type: 'EnvCreated', env_id, org_id, name: body.name } },
        causeOf(ask, env_id),
      )
      if (events.length === 0) throw new AppError('conflict', `name: "${body.name}" is taken`)
      return item(presentEnv(await envOf(deps, env_id)), 201)
    },
  }),

  route({
    ...shared,
    method: 'GET',
    path: '/operator/orgs/:org/envs',
    summary: 'List the environments of an organization',
    query: PageQuery,
    reply: { kind: 'list', schema: Environment },
    handle: async ({ deps, params, query }) => {
      const { org_id } = await orgOf(deps, params.org)
      await deps.views.settled('envs')
      const { items, total } = await deps.views.envs.find({
        equal: { org_id },
        sort: 'order',
        descending: true,
        ...query,
      })
      return list(items.map(presentEnv), total, query)
    },
  }),

  route({
    ...shared,
    method: 'POST',
    path: '/operator/envs/:env_id/api-keys',
    summary: 'Create an API key',
    description: 'Without `permissions` it may do everything (`{"*:*": ["*"]}`).',
    body: Type.Object({ name: Name, permissions: Type.Optional(Permissions) }),
    example: { name: 'ci', permissions: { 'build:*': ['create', 'execute'] } },
    reply: { kind: 'item', status: 201, schema: NewApiKey },
    handle: async (ask) => {
      const { deps, params, body } = ask
      const { name, permissions = FULL } = body
      checkPermissions(permissions)
      const { env_id } = await envOf(deps, params.env_id)
      const api_key_id = newId()
      const token = newApiToken(api_key_id)
      await deps.aggregates.tenants.handle(
        streamOf.key(api_key_id),
        {
          type: 'Create',
          fact: {
            type: 'ApiKeyCreated',
            api_key_id,
            env_id,
            name,
            mac: deps.keyring.macOf(parseApiToken(token)?.secret ?? ''),
            permissions,
          },
        },
        causeOf(ask, env_id),
        { fresh: true },
      )
      return item({ ...presentKey(await keyOf(deps, api_key_id)), token }, 201)
    },
  }),

  route({
    ...shared,
    method: 'GET',
    path: '/operator/envs/:env_id/api-keys',
    summary: 'List the API keys of an environment',
    query: PageQuery,
    reply: { kind: 'list', schema: ApiKey },
    handle: async ({ deps, params, query }) => {
      const { env_id } = await envOf(deps, params.env_id)
      await deps.views.settled('apiKeys')
      const { items, total } = await deps.views.apiKeys.find({
        equal: { env_id },
        sort: 'order',
        descending: true,
        ...query,
      })
      return list(items.map(presentKey), total, query)
    },
  }),

  route({
    ...shared,
    method: 'PATCH',
    path: '/operator/api-keys/:api_key_id',
    summary: 'Change an API key',
    description:
      'Holds at once, on every node, also for what was issued under the key: streams that it no longer allows end.',
    body: Type.Object({
      enabled: Type.Optional(Type.Boolean()),
      name: Type.Optional(Name),
      permissions: Type.Optional(Permissions),
    }),
    example: { enabled: false },
    reply: { kind: 'item', schema: ApiKey },
    handle: async (ask) => {
      const { deps, params, body } = ask
      const { enabled, name, permissions } = body
      if (permissions) checkPermissions(permissions)
      const { api_key_id, env_id } = await keyOf(deps, params.api_key_id)
      await deps.aggregates.apiKeys.handle(
        streamOf.key(api_key_id),
        {
          type: 'ChangeApiKey',
          api_key_id,
          changes: {
            ...(enabled !== undefined && { enabled }),
            ...(name !== undefined && { name }),
            ...(permissions && { permissions }),
          },
        },
        causeOf(ask, env_id),
      )
      deps.authenticator.ended(api_key_id)
      return item(presentKey(await keyOf(deps, api_key_id)))
    },
  }),

  route({
    ...shared,
    method: 'DELETE',
    path: '/operator/api-keys/:api_key_id',
    summary: 'Delete an API key',
    description: 'What was issued under it goes with it.',
    reply: { kind: 'none' },
    handle: async (ask) => {
      const { deps, params } = ask
      const { api_key_id, env_id } = await keyOf(deps, params.api_key_id)
      await deps.aggregates.apiKeys.handle(
        streamOf.key(api_key_id),
        { type: 'DeleteApiKey', api_key_id },
        causeOf(ask, env_id),
      )
      deps.authenticator.ended(api_key_id)
      for (const type of ['RevokeSessions', 'RevokeServiceKeys'] as const) {
        await deps.aggregates.issued.handle(
          streamOf.issued(api_key_id),
          { type, api_key_id, now: clock.iso() },
          causeOf(ask, env_id),
        )
      }
      return none
    },
  }),
]
