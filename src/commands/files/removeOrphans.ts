import { clock } from '../../clock.ts'
import { MAX_STORING_MS } from '../../content/contentKey.ts'
import { abortStaleUploads } from '../../content/staleUploads.ts'
import { timeOf } from '../../ids.ts'
import { UPLOAD_EXPIRES_MS } from './beginUpload.ts'
import type { CommandDeps } from '../deps.ts'

/** No content takes this long from its first byte to its fact. */
const CERTAIN_MS = 2 * (UPLOAD_EXPIRES_MS + MAX_STORING_MS)

type FileViews = Pick<CommandDeps['views'], 'files' | 'settled'>

/**
 * Removes content that belongs to no file: replaced or deleted just before a crash, or stored and never named. Young
 * content is kept, its fact may be under way. `now`: milliseconds since 1970. Returns how much it removed.
 */
export const removeOrphans = async (
  { blobs, views }: Pick<CommandDeps, 'blobs'> & { readonly views: FileViews },
  { now }: { readonly now: number },
): Promise<number> => {
  const ageMs = CERTAIN_MS - (now - clock.now())
  await abortStaleUploads(blobs, { ageMs, isKnown: ({ key }) => !key.startsWith('files/') })
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
