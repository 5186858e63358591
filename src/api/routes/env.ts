import { clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { termsOf } from '../../plans/plans.ts'
import { percentOf, periodOf, usageModels, usageOf } from '../../plans/usage.ts'
import { pastOf } from '../../commands/audit/past.ts'
import { envs } from '../../projections/tenants.ts'
import { AsOfQuery } from '../asOf.ts'
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
          : await (await pastOf(deps, as_of)).resource(envs, credential.env_id, credential.env_id)
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
      'they count until their retention period ends.',
    tag: 'Environment',
    needs: { type: 'env', action: 'read' },
    reply: { kind: 'item', schema: OrgUsage },
    handle: async ({ credential, deps: { views } }) => {
      await views.settled(...usageModels)
      const env = views.directory.env(credential.env_id)
      if (!env) throw new AppError('not_found', 'No such environment')
      const { org_id, plan } = env
      const { limits } = termsOf[plan]
      const nowMs = clock.now()
      const usage = await usageOf(views, { org_id, limits, nowMs })
      return item({
        org_id,
        usage,
        limits,
        usage_percent: percentOf(usage, limits),
        plan: { name: plan, ...periodOf(nowMs) },
      })
    },
  }),
]
