import { streamOf } from '../../events/streams.ts'
import type { ProjectDoc } from '../../projections/projects.ts'
import type { Caller, CommandDeps } from '../deps.ts'
import { projectDocFor } from './projectFor.ts'
import { reserveProjectName } from './projectName.ts'
import { checkedNetwork } from './projectNetwork.ts'
import { retryLate } from './retryLate.ts'

/**
 * Creates a project with a name unique in the environment (SPEC.md, Projects). Rejects with `project_exists` or
 * `quota_exceeded`, and with `bad_request` for an entry of `network` that is no host.
 */
export const createProject = async (
  deps: Pick<CommandDeps, 'aggregates' | 'views' | 'quotas'>,
  { name, network = null }: { name: string; network?: readonly string[] | null | undefined },
  { cause, newId }: Caller,
): Promise<ProjectDoc> => {
  const project_id = newId('project')
  const checked = checkedNetwork(network)
  const { aggregates, views, quotas } = deps
  const { env_id } = cause
  await quotas.inTurn(env_id, async () => {
    await views.settled('projects')
    const org_id = views.directory.env(env_id)?.org_id
    const projects = org_id === undefined ? [] : [...views.directory.projectsOf(org_id)]
    if (!projects.some((project) => project.project_id === project_id))
      quotas.checkCount(env_id, 'projects', projects.length + 1)
    const stream = streamOf.project(project_id)
    await retryLate(async () => {
      const fence = await aggregates.projects.read(stream, (state) =>
        state.status === 'absent' ? state.nameFence : null,
      )
      if (fence === null) return // a repeated request: the project may have another name by now
      await reserveProjectName(deps, { name, project_id, fence }, cause)
      const command = { type: 'CreateProject', project_id, name, network: checked, fence } as const
      await aggregates.projects.handle(stream, command, cause)
    })
  })
  return projectDocFor(deps, project_id)
}
