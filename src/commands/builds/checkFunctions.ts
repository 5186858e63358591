import { functionsOf, type Place } from '../../plans/functionsOf.ts'
import type { CommandDeps } from '../deps.ts'

/**
 * Throws `quota_exceeded` if the functions of all deployed and live builds of the organization would be more than its plan
 * allows, once a build with `count` functions takes a place of the project.
 */
export const checkFunctions = (
  { views: { directory }, quotas }: Pick<CommandDeps, 'views' | 'quotas'>,
  env_id: string,
  { project_id, place, count }: { project_id: string; place: Place; count: number },
): void => {
  const org_id = directory.env(env_id)?.org_id
  if (org_id === undefined) return
  const others = functionsOf(
    directory,
    org_id,
    (project, at) => project.project_id !== project_id || at !== place,
  )
  quotas.checkCount(env_id, 'functions', others + count)
}
