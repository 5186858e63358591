import type { KnownBuild } from '../../domain/project.ts'
import { functionsKey, oldBuildKey, oldFunctionsKey } from '../../ports/runtime.ts'
import type { CommandDeps } from '../deps.ts'
import { discardContent } from '../files/discardContent.ts'

export interface DiscardDeps extends Pick<CommandDeps, 'blobs'> {
  readonly views: Pick<CommandDeps['views'], 'builds' | 'settled'>
  /** Null on a node that has no unpacked builds. */
  readonly runtime: Pick<CommandDeps['runtime'], 'forget'> | null
}

type StoredBuild = Pick<KnownBuild, 'storage_path' | 'list'>

/** The keys of the zip and of the list of functions of a build, which an earlier version or an import may have stored. */
export const contentOf = ({ storage_path, list }: StoredBuild): string[] => [
  storage_path,
  oldFunctionsKey(storage_path),
  ...(list === undefined ? [] : [functionsKey(storage_path, list)]),
]

/**
 * Removes the zip, the list of functions and the unpacked files of a deleted build. A zip that version 0.1.0 stored is kept while another build
 * names it. Never rejects: after a failure, the sweep removes the zip.
 */
export const discardBuild = async (
  { blobs, views, runtime }: DiscardDeps,
  { hash, storage_path, list }: StoredBuild & Pick<KnownBuild, 'hash'>,
): Promise<void> => {
  try {
    if (storage_path === oldBuildKey(hash)) {
      await views.settled('builds')
      const query = { equal: { hash }, sort: 'order', limit: 100, offset: 0 }
      const { items, total } = await views.builds.find(query)
      if (total > items.length || items.some((build) => build.storage_path === storage_path)) return
    }
    for (const key of contentOf({ storage_path, list })) await discardContent(blobs, key)
    await runtime?.forget({ hash })
  } catch {}
}
