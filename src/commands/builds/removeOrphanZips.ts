import { buildDocId } from '../../projections/builds.ts'
import type { CommandDeps } from '../deps.ts'

const KEY = /^builds\/([^/]+)\/([0-9a-f-]{36})-[0-9a-f]{64}\.(?:zip|json)$/
const OLD_KEY = /^builds\/([0-9a-f]{64})\.zip$/

type Deps = Pick<CommandDeps, 'blobs'> & { readonly views: Pick<CommandDeps['views'], 'builds' | 'settled'> }

/**
 * Removes zips and lists of functions that belong to no build, for example after a crash. A zip is removed only if an earlier sweep had put it
 * into `suspects`, because the fact of a new one may not be stored yet. Resolves with the number of removed zips.
 */
export const removeOrphanZips = async (deps: Deps, suspects: Set<string>): Promise<number> => {
  const { blobs, views } = deps
  const before = new Set(suspects)
  suspects.clear()
  let removed = 0
  await views.settled('builds')
  for await (const { key } of blobs.list('builds/')) {
    if (await isNamed(deps, key)) continue
    if (!before.has(key)) {
      suspects.add(key)
      continue
    }
    await views.settled('builds') // now the read model knows every fact that could name it
    if (await isNamed(deps, key)) continue
    await blobs.remove(key)
    removed++
  }
  return removed
}

const isNamed = async ({ views: { builds } }: Deps, key: string): Promise<boolean> => {
  const [, project_id, build_id] = KEY.exec(key) ?? []
  if (project_id !== undefined && build_id !== undefined)
    return (
      (await builds.get(buildDocId(project_id, build_id)))?.storage_path === key.replace(/\.json$/, '.zip')
    )
  const [, hash] = OLD_KEY.exec(key) ?? []
  if (hash === undefined) return true // another version of the service wrote it
  const { total } = await builds.find({ equal: { hash }, sort: 'order', limit: 1, offset: 0 })
  return total > 0
}
