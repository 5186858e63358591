import { activeProject } from '../../domain/project.ts'
import { streamOf } from '../../events/streams.ts'
import type { ProjectDoc } from '../../projections/projects.ts'
import type { Caller, CommandDeps } from '../deps.ts'
import { projectDocFor, projectFor } from './projectFor.ts'
import { reserveProjectName } from './projectName.ts'
import { checkedNetwork } from './projectNetwork.ts'
import { retryLate } from './retryLate.ts'

export interface ProjectChange {
  /** The project by id or name. */
  readonly project: string
  readonly name?: string | undefined
  readonly network?: readonly string[] | null | undefined
}

/**
 * Changes the name or the network of a project, or both at once (SPEC.md, Projects). The old name becomes available, and new
 * connections of its functions obey the new list. Rejects with `bad_request`, `not_found`, `project_exists` or
 * `rate_limit_exceeded`, and then changes nothing.
 */
export const updateProject = async (
  deps: Pick<CommandDeps, 'aggregates' | 'views'>,
  { project, name, network }: ProjectChange,
  { cause }: Caller,
): Promise<ProjectDoc> => {
  const checked = network === undefined ? undefined : checkedNetwork(network)
  await deps.views.settled('projects')
  const { project_id, name: before } = projectFor(deps.views.directory, cause.env_id, project)
  const { projects } = deps.aggregates
  const stream = streamOf.project(project_id)
  if (name !== undefined && name !== before)
    await retryLate(async () => {
      const fence = await projects.read(stream, (state) => activeProject(state).nameFence)
      await reserveProjectName(deps, { name, project_id, fence }, cause)
      await projects.handle(
        stream,
        { type: 'RenameProject', project_id, name, fence, network: checked },
        cause,
      )
    })
  else if (checked !== undefined)
    await projects.handle(stream, { type: 'ChangeNetwork', project_id, network: checked }, cause)
  return projectDocFor(deps, project_id)
}
