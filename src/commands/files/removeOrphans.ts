import { clock } from '../../clock.ts'
import { MAX_STORING_MS } from '../../content/contentKey.ts'
import { REPLIES } from '../../content/replyKey.ts'
import { abortStaleUploads } from '../../content/staleUploads.ts'
import { envIdOf } from '../../events/event.ts'
import { timeOf } from '../../ids.ts'
import type { CommandDeps } from '../deps.ts'
import { storedFacts } from '../storedFacts.ts'
import { UPLOAD_EXPIRES_MS } from './beginUpload.ts'
import { fileAt } from './fileAt.ts'

/** Content is younger than this when its fact is stored, so older content without a fact is an orphan. */
const CERTAIN_MS = 2 * (UPLOAD_EXPIRES_MS + MAX_STORING_MS)

/** Where values are stored in parts: a bucket may contain uploads of others. No value takes as long as `CERTAIN_MS`. */
const OURS = ['files/', 'builds/', 'payloads/', REPLIES]

/** Content of one sweep; the next one continues. */
const MOST = 10_000

type FileViews = Pick<CommandDeps['views'], 'files' | 'settled'>
type Deps = Pick<CommandDeps, 'aggregates' | 'blobs' | 'store'> & { readonly views: FileViews }

/**
 * Removes content that belongs to no file, for example after a crash, and aborts what was being stored in parts. Young
 * content is kept, because its fact may not be stored yet. The read model only finds what may be removed: documents can be missing until
 * it is built again, so the log decides. `now`: milliseconds since 1970. Resolves with the number of removed blobs.
 */
export const removeOrphans = async (deps: Deps, { now }: { readonly now: number }): Promise<number> => {
  const { blobs, views } = deps
  const ageMs = CERTAIN_MS - (now - clock.now())
  await abortStaleUploads(blobs, {
    ageMs,
    isKnown: ({ key }) => !OURS.some((prefix) => key.startsWith(prefix)),
  })
  const unnamed = new Set<string>()
  await views.settled('files')
  for await (const { key } of blobs.list('files/')) {
    if (now - timeOf(key.slice(key.lastIndexOf('/') + 1)) < CERTAIN_MS) continue
    if (!(await isNamed(views, key))) unnamed.add(key)
    if (unnamed.size === MOST) break
  }
  if (unnamed.size === 0) return 0
  for await (const recorded of storedFacts(deps, ['FileStored'])) {
    const { key, path } = recorded.event
    if (!unnamed.has(key)) continue
    if ((await fileAt(deps, envIdOf(recorded), path))?.key === key) unnamed.delete(key)
  }
  let removed = 0
  for (const key of unnamed) {
    await views.settled('files')
    if (await isNamed(views, key)) continue // by an import, whose content keeps its age: its fact came after those
    await blobs.remove(key)
    removed++
  }
  return removed
}

const isNamed = async (views: FileViews, key: string): Promise<boolean> => {
  const { items } = await views.files.find({ equal: { key }, sort: 'path', limit: 1, offset: 0 })
  return items.length > 0
}
