import { resealVariables } from '../../secrets/contextVariables.ts'
import { AppError } from '../../errors.ts'
import { everyDoc } from '../../loops/pages.ts'
import type { ApiDeps } from '../deps.ts'
import { type Ask, item, none, route } from '../route.ts'
import { RotatedDataKey } from '../schemas.ts'

const shared = { tag: 'Operator', needs: null, operator: true } as const

export const dataKeyRoutes = [
  route({
    method: 'POST',
    path: '/operator/envs/:env_id/rotate-data-key',
    summary: 'Rotate the data keys of an environment',
    description:
      'From now on secrets of the environment are sealed with new keys, and the context variables of its projects ' +
      'are sealed anew. What the former keys sealed still opens.',
    ...shared,
    reply: { kind: 'item', schema: RotatedDataKey },
    handle: async ({ params: { env_id }, deps, request_id }) => {
      await demandEnv(deps, env_id)
      const cause = causeOf(env_id, request_id)
      const key_id = await deps.dataKeys.rotate({ env_id }, cause)
      let resealed = 0
      for await (const project_id of withVariables(deps, env_id)) {
        const place = { env_id, project_id }
        const current = await deps.dataKeys.rotate(place, cause)
        resealed += await resealVariables(deps, place, { current, cause })
      }
      return item({ env_id, key_id, resealed })
    },
  }),

  route({
    method: 'DELETE',
    path: '/operator/envs/:env_id/data-keys',
    summary: 'Erase the secrets of an environment',
    description:
      'Destroys the data keys of the environment and its projects. Nothing that was sealed with them can be read ' +
      'again, in no copy of the log: context variables keep their names and need new values. There is no way back.',
    ...shared,
    reply: { kind: 'none' },
    handle: async ({ params: { env_id }, deps, request_id }) => {
      await demandEnv(deps, env_id)
      await deps.dataKeys.destroy({ env_id }, { final: false }, causeOf(env_id, request_id))
      return none
    },
  }),
]

const demandEnv = async ({ views }: ApiDeps, env_id: string): Promise<void> => {
  await views.settled('envs', 'projects', 'contextVariables')
  if (!(await views.envs.get(env_id))) throw new AppError('not_found', `No environment ${env_id}`)
}

const causeOf = (env_id: string, request_id: Ask['request_id']) => ({
  env_id,
  correlation_id: request_id,
  actor: 'operator',
})

/** The projects of an environment that have context variables. */
async function* withVariables({ views }: ApiDeps, env_id: string): AsyncGenerator<string> {
  const projects = everyDoc(views.projects, { id: 'project_id', equal: { env_id }, sort: 'order' })
  for await (const { project_id } of projects) {
    const { total } = await views.contextVariables.find({
      equal: { project_id },
      sort: 'order',
      limit: 0,
      offset: 0,
    })
    if (total > 0) yield project_id
  }
}
