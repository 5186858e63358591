import { AppError } from '../../errors.ts'
import type { Directory } from '../../projections/directory.ts'
import type { DirectoryBuild, DirectoryProject } from '../../projections/directoryProject.ts'

/** Throws `unavailable` if the functions of a build are not known: an empty list would be wrong. */
export const demandReadable = (
  { name }: Pick<DirectoryProject, 'name'>,
  build: DirectoryBuild | null,
): void => {
  if (!build?.unreadable) return
  throw new AppError(
    'unavailable',
    `The functions of the build ${build.build_id} of project "${name}" cannot be read. Deploy another build, or ask the operator to restore it`,
  )
}

/** Throws `unavailable` if a function that was not found may be one of an environment's builds that cannot be read. */
export const demandAllReadable = (directory: Pick<Directory, 'unreadableIn'>, env_id: string): void => {
  for (const project of directory.unreadableIn(env_id)) demandReadable(project, project.deployed)
}
