import { AppError } from '../../errors.ts'
import { type BuildDoc, buildDocId } from '../../projections/builds.ts'
import type { CommandDeps } from '../deps.ts'

/** Reads a build of the project, once everything appended so far is readable (I2). Rejects with `not_found`. */
export const buildFor = async (
  { views }: Pick<CommandDeps, 'views'>,
  project_id: string,
  build_id: string,
): Promise<BuildDoc> => {
  await views.settled('builds')
  const build = await views.builds.get(buildDocId(project_id, build_id))
  if (!build) throw new AppError('not_found', `No build ${build_id}`)
  return build
}
