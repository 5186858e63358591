import { compareBuild } from '../../commands/builds/compareBuild.ts'
import { holding } from '../../loops/byteBudget.ts'
import { item, route } from '../route.ts'
import { BuildChanges } from '../schemas.ts'
import { byProject } from './projects.ts'

export const buildChangesRoute = route({
  method: 'GET',
  path: '/v1/projects/:project/builds/:build_id/changes',
  operationId: 'getBuildChanges',
  summary: 'Compare a build with the deployed one',
  description:
    'The functions that a deployment of the build would add, remove or change. It compares triggers and other metadata, ' +
    'not code.',
  tag: 'Builds',
  needs: { type: 'build', action: 'read', ...byProject },
  reply: { kind: 'item', schema: BuildChanges },
  handle: async ({ deps, params, credential }) => {
    const owner = deps.memory.ownerOf(credential.env_id)
    const hold = <T>(bytes: number, work: () => Promise<T>): Promise<T> =>
      bytes === 0 ? work() : holding(deps.memory.values, { owner, bytes }, work)
    return item({ ...(await compareBuild(deps, params, credential, hold)) })
  },
})
