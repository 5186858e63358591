import { AppError } from '../../errors.ts'
import type { Directory } from '../../projections/directory.ts'
import type { DirectoryProject } from '../../projections/directoryProject.ts'
import type { ProjectDoc } from '../../projections/projects.ts'
import type { CommandDeps } from '../deps.ts'

/** Returns a project of the environment by id or name. Throws `not_found`, also for other environments (I7). */
export const projectFor = (directory: Directory, env_id: string, idOrName: string): DirectoryProject => {
  const found = directory.project(env_id, idOrName)
  if (!found) throw new AppError('not_found', `No project "${idOrName}"`)
  return found
}

/** Reads the document of a project, once everything appended so far is readable (I2). Rejects with `not_found`. */
export const projectDocFor = async (
  { views }: Pick<CommandDeps, 'views'>,
  project_id: string,
): Promise<ProjectDoc> => {
  await views.settled('projects')
  const doc = await views.projects.get(project_id)
  if (!doc) throw new AppError('not_found', 'No such project')
  return doc
}
