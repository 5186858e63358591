import { type Content, openSection } from '../../content/blobContent.ts'
import { LostBlob } from '../../content/lostBlob.ts'
import { isAppError } from '../../errors.ts'
import type { BuildDoc } from '../../projections/builds.ts'
import type { CommandDeps } from '../deps.ts'
import { buildFor } from './buildFor.ts'

/**
 * Opens the zip of a build. Rejects with `not_found` if the build was deleted meanwhile, and with `unavailable` if its zip is
 * missing. Reading a damaged zip fails with `unavailable`.
 */
export const openZip = async (
  deps: Pick<CommandDeps, 'blobs' | 'views'>,
  { project_id, build_id, storage_path: key, size: bytes, hash: sha256 }: BuildDoc,
): Promise<Content> => {
  try {
    return await openSection(deps.blobs, { key, bytes, sha256 })
  } catch (error) {
    if (!isAppError(error, 'not_found')) throw error
    await buildFor(deps, project_id, build_id)
    throw new LostBlob(`The zip of build ${build_id} is missing: the blob ${key}`, error)
  }
}
