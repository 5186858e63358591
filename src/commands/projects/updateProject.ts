import { AppError } from '../../errors.ts'
import { streamOf } from '../../events/streams.ts'
import type { ProjectDoc } from '../../projections/projects.ts'
import type { Caller, CommandDeps } from '../deps.ts'
import { projectDocFor, projectFor } from './projectFor.ts'
import { checkedNetwork } from './projectNetwork.ts'
import { renameProject } from './renameProject.ts'

export interface ProjectChange {
  /** The project by id or name. */
  readonly project: string
  readonly name?: string | undefined
  readonly network?: readonly string[] | null | undefined
}

/**
 * Changes the name or the network of a project, or both (SPEC.md, Projects). New connections of its functions obey the
 * new list. Rejects with `bad_request`, `not_found` or `project_exists`, and then changes nothing.
 */
export const updateProject = async (
  deps: Pick<CommandDeps, 'aggregates' | 'views'>,
  { project, name, network }: ProjectChange,
  caller: Caller,
): Promise<ProjectDoc> => {
  if (name === undefined && network === undefined)
    throw new AppError('bad_request', 'name: expected `name` or `network`, got neither')
  const checked = network === undefined ? undefined : checkedNetwork(network)
  await deps.views.settled('projects')
  const { project_id } = projectFor(deps.views.directory, caller.cause.env_id, project)
  if (name !== undefined) await renameProject(deps, { project: project_id, name }, caller)
  if (checked !== undefined)
    await deps.aggregates.projects.handle(
      streamOf.project(project_id),
      { type: 'ChangeNetwork', project_id, network: checked },
      caller.cause,
    )
  return projectDocFor(deps, project_id)
}
