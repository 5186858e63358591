import type { EventOf } from '../../src/events/index.ts'

/** The facts of a build of the project `p`. */
export const uploaded = (
  build_id: string,
  build_type: 'release' | 'live' = 'release',
): EventOf<'BuildUploaded'> => ({
  type: 'BuildUploaded',
  build_id,
  project_id: 'p',
  hash: `hash of ${build_id}`,
  size: 9,
  build_type,
  storage_path: `builds/${build_id}.zip`,
  storage_backend: 'disk',
  functions: [],
})

export const deployed = (build_id: string, previous_build_id?: string): EventOf<'BuildDeployed'> => ({
  type: 'BuildDeployed',
  build_id,
  project_id: 'p',
  hash: `hash of ${build_id}`,
  functions: [],
  ...(previous_build_id !== undefined && { previous_build_id }),
})
