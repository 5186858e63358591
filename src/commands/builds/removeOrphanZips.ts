import { buildsOf } from '../../domain/project.ts'
import { streamOf } from '../../events/streams.ts'
import { type BuildDoc, buildDocId } from '../../projections/builds.ts'
import type { CommandDeps } from '../deps.ts'
import { contentOf } from '../projects/discardBuild.ts'
import { storedFacts } from '../storedFacts.ts'

const KEY = /^builds\/([^/]+)\/([0-9a-f-]{36})-[0-9a-f]{64}(?:\.zip|(?:-[0-9a-f]{64})?\.json)$/
const OLD_KEY = /^builds\/([0-9a-f]{64})\.zip$/

type Deps = Pick<CommandDeps, 'aggregates' | 'blobs' | 'store'> & {
  readonly views: Pick<CommandDeps['views'], 'builds' | 'settled'>
}

/**
 * Removes zips and lists of functions that belong to no build, for example after a crash. A zip is removed only if an earlier sweep had put it
 * into `suspects`, because the fact of a new one may not be stored yet. The read model only finds what may be removed: documents can be
 * missing until it is built again, so the log decides. Resolves with the number of removed zips.
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
    if (await isNamedInLog(deps, key)) continue
    await blobs.remove(key)
    removed++
  }
  return removed
}

const isNamed = async ({ views: { builds } }: Deps, key: string): Promise<boolean> => {
  const [, project_id, build_id] = KEY.exec(key) ?? []
  if (project_id !== undefined && build_id !== undefined) {
    const build = await builds.get(buildDocId(project_id, build_id))
    return build !== null && contentOf({ ...build, list: build.functions_ref?.sha256 }).includes(key)
  }
  const [, hash] = OLD_KEY.exec(key) ?? []
  if (hash === undefined) return true // another version of the service wrote it
  const { total } = await builds.find({ equal: { hash }, sort: 'order', limit: 1, offset: 0 })
  return total > 0
}

const isNamedInLog = async (deps: Deps, key: string): Promise<boolean> => {
  const [, project_id, build_id] = KEY.exec(key) ?? []
  if (project_id !== undefined && build_id !== undefined) return isOf(deps, { project_id, build_id }, key)
  for await (const { event } of storedFacts(deps, ['BuildUploaded']))
    if (event.storage_path === key && (await isOf(deps, event, key))) return true
  return false
}

const isOf = (
  { aggregates }: Deps,
  { project_id, build_id }: Pick<BuildDoc, 'project_id' | 'build_id'>,
  key: string,
): Promise<boolean> =>
  aggregates.projects.read(streamOf.project(project_id), (state) => {
    const build = buildsOf(state).get(build_id)
    return build !== undefined && contentOf(build).includes(key)
  })
