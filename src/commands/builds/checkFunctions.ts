import type { DirectoryBuild } from '../../projections/directoryProject.ts'
import type { CommandDeps } from '../deps.ts'

/**
 * Throws `quota_exceeded` if the functions of all deployed and live builds of the organization would be more than its plan
 * allows, once a build with `count` functions takes a place of the project.
 */
export const checkFunctions = (
  { views: { directory }, quotas }: Pick<CommandDeps, 'views' | 'quotas'>,
  env_id: string,
  { project_id, place, count }: { project_id: string; place: 'deployed' | 'live'; count: number },
): void => {
  const org_id = directory.env(env_id)?.org_id
  if (org_id === undefined) return
  let functions = count
  for (const project of directory.projectsOf(org_id)) {
    if (project.project_id !== project_id) functions += sizeOf(project.deployed) + sizeOf(project.live)
    else functions += sizeOf(place === 'live' ? project.deployed : project.live)
  }
  quotas.checkCount(env_id, 'functions', functions)
}

const sizeOf = (build: DirectoryBuild | null): number => build?.functions.length ?? 0
