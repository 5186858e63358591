import Type from 'typebox'
import { envThen, orgThen } from '../../commands/audit/pastTenants.ts'
import { changeOrg } from '../../commands/orgs/changeOrg.ts'
import { createEnv } from '../../commands/orgs/createEnv.ts'
import { createOrg } from '../../commands/orgs/createOrg.ts'
import { deleteEnv } from '../../commands/orgs/deleteEnv.ts'
import { deleteOrg } from '../../commands/orgs/deleteOrg.ts'
import { findEnv, findOrg } from '../../commands/orgs/findTenant.ts'
import { LABEL_PATTERN } from '../../commands/orgs/label.ts'
import { Plan } from '../../events/org.ts'
import { usageModels } from '../../plans/usage.ts'
import type { EnvDoc, OrgDoc } from '../../projections/tenants.ts'
import { AsOfQuery } from '../asOf.ts'
import { item, none, operatorRoute } from '../route.ts'
import { listOf, PageQuery } from '../paging.ts'
import { fieldsOf } from '../present/fieldsOf.ts'
import { presentOrgUsage } from '../present/orgUsage.ts'
import { Environment, Org, OrgUsage } from '../schemas.ts'

const tag = 'Operator'

/** Names of organizations and environments are part of webhook URLs. */
const Label = Type.String({
  pattern: LABEL_PATTERN,
  description: 'Lower-case letters, digits and hyphens, as in a host name',
})
const Name = Type.String({ minLength: 1, maxLength: 200 })

const presentOrg = (doc: OrgDoc) => fieldsOf(Org, doc)
const presentEnv = ({ env_id, org_id, name, active, importing }: EnvDoc) => ({
  env_id,
  org_id,
  name,
  active,
  ...(importing && { importing }),
})

export const operatorRoutes = [
  operatorRoute({
    tag,
    method: 'POST',
    path: '/operator/orgs',
    operationId: 'createOrg',
    summary: 'Create an organization',
    body: Type.Object({ slug: Label, name: Type.Optional(Name), plan: Plan }),
    example: { slug: 'acme', name: 'Acme', plan: 'pro' },
    errors: ['conflict'],
    reply: { kind: 'item', status: 201, schema: Org },
    handle: async ({ deps, body, operator }) => {
      const { org_id } = await createOrg(
        deps,
        { ...body, creation_id: operator.newId('org') },
        operator.cause,
      )
      return item(presentOrg(await findOrg(deps, org_id)), 201)
    },
  }),

  operatorRoute({
    tag,
    method: 'GET',
    path: '/operator/orgs',
    operationId: 'listOrgs',
    summary: 'List organizations',
    query: PageQuery,
    reply: { kind: 'list', schema: Org },
    handle: ({ query, deps: { views } }) => listOf(views, 'orgs', { equal: {}, ...query }, presentOrg),
  }),

  operatorRoute({
    tag,
    method: 'GET',
    path: '/operator/orgs/:org',
    operationId: 'getOrg',
    summary: 'Get an organization',
    query: AsOfQuery,
    reply: { kind: 'item', schema: Org },
    handle: async ({ deps, params: { org }, query: { as_of } }) =>
      item(presentOrg(as_of === undefined ? await findOrg(deps, org) : await orgThen(deps, org, as_of))),
  }),

  operatorRoute({
    tag,
    method: 'GET',
    path: '/operator/orgs/:org/usage',
    operationId: 'getOrgUsageById',
    summary: 'Get usage and limits of an organization by its id or slug',
    description: 'The same as its keys read. `live_streams.in_env` is null.',
    reply: { kind: 'item', schema: OrgUsage },
    handle: async ({ deps, params }) => {
      await deps.views.settled(...usageModels)
      const { org_id, plan } = await findOrg(deps, params.org)
      return item(await presentOrgUsage(deps, { org_id, plan, env_id: null }))
    },
  }),

  operatorRoute({
    tag,
    method: 'PATCH',
    path: '/operator/orgs/:org',
    operationId: 'updateOrg',
    summary: 'Change an organization',
    description: 'A new plan applies from the next request on.',
    body: Type.Object(
      {
        plan: Type.Optional(Plan),
        name: Type.Optional(Name),
        team_members: Type.Optional(Type.Integer({ minimum: 0, maximum: 1e6 })),
      },
      { minProperties: 1 },
    ),
    example: { plan: 'scale' },
    reply: { kind: 'item', schema: Org },
    handle: async ({ deps, params: { org }, body, operator }) => {
      const { org_id } = await changeOrg(deps, { ...body, org }, operator.cause)
      return item(presentOrg(await findOrg(deps, org_id)))
    },
  }),

  operatorRoute({
    tag,
    method: 'DELETE',
    path: '/operator/orgs/:org',
    operationId: 'deleteOrg',
    summary: 'Delete an organization',
    description:
      'While the organization has environments, the reply is 409 with their ids: delete them first. Afterwards, its slug ' +
      'is available. A repeated request changes nothing.',
    errors: ['conflict'],
    reply: { kind: 'none' },
    handle: async ({ deps, params, operator }) => {
      await deleteOrg(deps, params, operator.cause)
      return none
    },
  }),

  operatorRoute({
    tag,
    method: 'POST',
    path: '/operator/orgs/:org/envs',
    operationId: 'createEnvironment',
    summary: 'Create an environment',
    body: Type.Object({ name: Label }),
    example: { name: 'production' },
    errors: ['conflict'],
    reply: { kind: 'item', status: 201, schema: Environment },
    handle: async ({ deps, params: { org }, body: { name }, operator }) => {
      const { env_id } = await createEnv(
        deps,
        { org, name, creation_id: operator.newId('env') },
        operator.cause,
      )
      return item(presentEnv(await findEnv(deps, env_id)), 201)
    },
  }),

  operatorRoute({
    tag,
    method: 'GET',
    path: '/operator/orgs/:org/envs',
    operationId: 'listEnvironments',
    summary: 'List the environments of an organization',
    query: PageQuery,
    reply: { kind: 'list', schema: Environment },
    handle: async ({ deps, params, query }) => {
      const { org_id } = await findOrg(deps, params.org)
      return listOf(deps.views, 'envs', { equal: { org_id, active: true }, ...query }, presentEnv)
    },
  }),

  operatorRoute({
    tag,
    method: 'GET',
    path: '/operator/envs/:env_id',
    operationId: 'getEnvironmentById',
    summary: 'Get an environment',
    query: AsOfQuery,
    reply: { kind: 'item', schema: Environment },
    handle: async ({ deps, params: { env_id }, query: { as_of } }) =>
      item(
        presentEnv(as_of === undefined ? await findEnv(deps, env_id) : await envThen(deps, env_id, as_of)),
      ),
  }),

  operatorRoute({
    tag,
    method: 'DELETE',
    path: '/operator/envs/:env_id',
    operationId: 'deleteEnvironment',
    summary: 'Delete an environment',
    description:
      'Its API keys, sessions and service keys end at once, and its webhooks return 404. Its runs are cancelled, and its ' +
      'projects, builds, files, custom domains, secrets, runs and events are removed in the background. Its name is ' +
      'available again. The runs of the month still count as usage. This cannot be undone. A repeated request changes ' +
      'nothing.',
    reply: { kind: 'none' },
    handle: async ({ deps, params, operator }) => {
      await deleteEnv(deps, params, operator.cause)
      return none
    },
  }),
]
