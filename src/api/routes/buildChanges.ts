import { compareBuild } from '../../commands/builds/compareBuild.ts'
import { item, route } from '../route.ts'
import { BuildChanges } from '../schemas.ts'
import { projectPaths } from './projects.ts'

export const buildChangesRoute = route({
  method: 'GET',
  path: '/v1/projects/:project/builds/:build_id/changes',
  operationId: 'getBuildChanges',
  summary: 'Compare a build with the deployed one',
  description:
    'The functions that a deployment of the build would add, remove or change. It compares triggers and other metadata, ' +
    'not code.',
  tag: 'Builds',
  needs: { type: 'build', action: 'read', path: projectPaths },
  reply: { kind: 'item', schema: BuildChanges },
  handle: async ({ deps, params, credential }) => item({ ...(await compareBuild(deps, params, credential)) }),
})
