import { clock } from '../../clock.ts'
import { MAX_STORING_MS } from '../../content/contentKey.ts'
import { REPLIES } from '../../content/replyKey.ts'
import { abortStaleUploads } from '../../content/staleUploads.ts'
import { timeOf } from '../../ids.ts'
import { UPLOAD_EXPIRES_MS } from './beginUpload.ts'
import type { CommandDeps } from '../deps.ts'

/** Content is younger than this when its fact is stored, so older content without a fact is an orphan. */
const CERTAIN_MS = 2 * (UPLOAD_EXPIRES_MS + MAX_STORING_MS)

/** Where values are stored in parts: a bucket may contain uploads of others. No value takes as long as `CERTAIN_MS`. */
const OURS = ['files/', 'builds/', 'payloads/', REPLIES]

type FileViews = Pick<CommandDeps['views'], 'files' | 'settled'>

/**
 * Removes content that belongs to no file, for example after a crash, and aborts what was being stored in parts. Young
 * content is kept, because its fact may not be stored yet. `now`: milliseconds since 1970. Resolves with the number of removed blobs.
 */
export const removeOrphans = async (
  { blobs, views }: Pick<CommandDeps, 'blobs'> & { readonly views: FileViews },
  { now }: { readonly now: number },
): Promise<number> => {
  const ageMs = CERTAIN_MS - (now - clock.now())
  await abortStaleUploads(blobs, {
    ageMs,
    isKnown: ({ key }) => !OURS.some((prefix) => key.startsWith(prefix)),
  })
  let removed = 0
  await views.settled('files')
  for await (const { key } of blobs.list('files/')) {
    if (now - timeOf(key.slice(key.lastIndexOf('/') + 1)) < CERTAIN_MS) continue
    if (await isNamed(views, key)) continue
    await views.settled('files') // now the read model knows every fact that could name it
    if (await isNamed(views, key)) continue
    await blobs.remove(key)
    removed++
  }
  return removed
}

const isNamed = async (views: FileViews, key: string): Promise<boolean> => {
  const { items } = await views.files.find({ equal: { key }, sort: 'path', limit: 1, offset: 0 })
  return items.length > 0
}
