import type { KnownBuild } from '../../domain/project.ts'
import { functionsKey, oldBuildKey } from '../../ports/runtime.ts'
import type { CommandDeps } from '../deps.ts'
import { discardContent } from '../files/discardContent.ts'

export interface DiscardDeps extends Pick<CommandDeps, 'blobs'> {
  readonly views: Pick<CommandDeps['views'], 'builds' | 'settled'>
  /** Null on a node that has no unpacked builds. */
  readonly runtime: Pick<CommandDeps['runtime'], 'forget'> | null
}

/**
 * Removes the zip, the list of functions and the unpacked files of a deleted build. A zip that version 0.1.0 stored is kept while another build
 * names it. Never rejects: after a failure, the sweep removes the zip.
 */
export const discardBuild = async (
  { blobs, views, runtime }: DiscardDeps,
  { hash, storage_path }: Pick<KnownBuild, 'hash' | 'storage_path'>,
): Promise<void> => {
  try {
    if (storage_path === oldBuildKey(hash)) {
      await views.settled('builds')
      const query = { equal: { hash }, sort: 'order', limit: 100, offset: 0 }
      const { items, total } = await views.builds.find(query)
      if (total > items.length || items.some((build) => build.storage_path === storage_path)) return
    }
    await discardContent(blobs, storage_path)
    await discardContent(blobs, functionsKey(storage_path))
    await runtime?.forget({ hash })
  } catch {}
}
