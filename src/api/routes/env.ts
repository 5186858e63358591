import { AppError } from '../../errors.ts'
import { item, route } from '../route.ts'
import { Environment } from '../schemas.ts'

export const envRoutes = [
  route({
    method: 'GET',
    path: '/v1/env',
    summary: 'Get the environment of the credential',
    tag: 'Environment',
    needs: { type: 'env', action: 'read' },
    reply: { kind: 'item', schema: Environment },
    handle: async ({ credential, deps: { views } }) => {
      const env = await views.envs.get(credential.env_id)
      if (!env) throw new AppError('not_found', 'No such environment')
      const { env_id, org_id, name, active } = env
      return item({ env_id, org_id, name, active })
    },
  }),
]
