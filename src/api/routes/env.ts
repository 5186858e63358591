import { AppError } from '../../errors.ts'
import { usageModels } from '../../plans/usage.ts'
import { envThen } from '../../commands/audit/pastTenants.ts'
import { AsOfQuery } from '../asOf.ts'
import { presentOrgUsage } from '../present/orgUsage.ts'
import { item, route } from '../route.ts'
import { Environment, OrgUsage } from '../schemas.ts'

export const envRoutes = [
  route({
    method: 'GET',
    path: '/v1/env',
    operationId: 'getEnvironment',
    summary: 'Get the environment of the credential',
    tag: 'Environment',
    needs: { type: 'env', action: 'read' },
    query: AsOfQuery,
    reply: { kind: 'item', schema: Environment },
    handle: async ({ credential, query: { as_of }, deps }) => {
      await deps.views.settled('envs')
      const env =
        as_of === undefined
          ? await deps.views.envs.get(credential.env_id)
          : await envThen(deps, credential.env_id, as_of)
      if (!env) throw new AppError('not_found', 'No such environment')
      const { env_id, org_id, name, active } = env
      return item({ env_id, org_id, name, active })
    },
  }),

  route({
    method: 'GET',
    path: '/v1/org/usage',
    operationId: 'getOrgUsage',
    summary: 'Get usage and limits of the organization',
    description:
      'Covers all environments of the organization. The billing period is the calendar month in UTC. Calls are runs; ' +
      'they count until their retention period ends. Live streams are those of the node that replies.',
    tag: 'Environment',
    needs: { type: 'env', action: 'read' },
    reply: { kind: 'item', schema: OrgUsage },
    handle: async ({ credential: { env_id }, deps }) => {
      await deps.views.settled(...usageModels)
      const env = deps.views.directory.env(env_id)
      if (!env) throw new AppError('not_found', 'No such environment')
      return item(await presentOrgUsage(deps, { ...env, env_id }))
    },
  }),
]
