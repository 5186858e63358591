import type { Directory } from '../projections/directory.ts'
import type { DirectoryProject } from '../projections/directoryProject.ts'

/** The builds of a project whose functions run. */
export type Place = 'deployed' | 'live'

const PLACES: readonly Place[] = ['deployed', 'live']

/** The functions of all deployed and live builds of the organization that `counts` accepts. */
export const functionsOf = (
  directory: Pick<Directory, 'projectsOf'>,
  org_id: string,
  counts: (project: DirectoryProject, place: Place) => boolean,
): number => {
  let functions = 0
  for (const project of directory.projectsOf(org_id))
    for (const place of PLACES) if (counts(project, place)) functions += project[place]?.functions.length ?? 0
  return functions
}
