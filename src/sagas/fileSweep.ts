import { setTimeout as delay } from 'node:timers/promises'
import { clock, isoOf } from '../clock.ts'
import { UPLOAD_EXPIRES_MS } from '../commands/beginUpload.ts'
import type { CommandDeps } from '../commands/deps.ts'
import { expireUpload } from '../commands/expireUpload.ts'
import { MAX_STORING_MS } from '../content/contentKey.ts'
import { timeOf } from '../ids.ts'
import type { Logger } from '../logger.ts'
import type { Blobs } from '../ports/blobs.ts'
import type { Views } from '../projections/views.ts'
import { abortStaleUploads } from '../content/staleUploads.ts'

interface Deps {
  readonly blobs: Blobs
  readonly aggregates: CommandDeps['aggregates']
  readonly views: Pick<Views, 'files' | 'uploads' | 'settled'>
  readonly logger: Logger
}

const EXPIRY_EVERY_MS = 60_000
const ORPHANS_EVERY_MS = 6 * 3600_000
/** No content takes this long from its first byte to its fact. */
const CERTAIN_MS = 2 * (UPLOAD_EXPIRES_MS + MAX_STORING_MS)

/** Ends uploads that have expired and removes content that is nobody's, until the signal aborts. Any number of nodes may. */
export const sweepFiles = async (deps: Deps, signal: AbortSignal): Promise<void> => {
  let orphansAt = clock.now() + Math.random() * EXPIRY_EVERY_MS
  while (!signal.aborted) {
    await delay(EXPIRY_EVERY_MS * (0.5 + Math.random()), undefined, { signal }).catch(() => {})
    if (signal.aborted) return
    await expireUploads(deps, clock.now())
    if (clock.now() < orphansAt) continue
    orphansAt = clock.now() + ORPHANS_EVERY_MS
    await removeOrphans(deps, clock.now())
  }
}

/** Aborts the uploads that had expired at `now`; gives how many. */
export const expireUploads = async (deps: Deps, now: number): Promise<number> => {
  const { views } = deps
  await views.settled('uploads')
  let expired = 0
  for (;;) {
    const { items } = await views.uploads.find({
      equal: {},
      sort: 'expires_at',
      before: isoOf(now),
      limit: 100,
      offset: 0,
    })
    if (items.length === 0) return expired
    for (const { upload_id, env_id } of items) if (await expireUpload(deps, { env_id, upload_id })) expired++
    await views.settled('uploads')
  }
}

/**
 * Removes content that no file has: what was replaced or deleted just before a crash, or stored and never named. Young
 * content is left alone, its fact may be on its way. Gives how many it removed.
 */
export const removeOrphans = async ({ blobs, views, logger }: Deps, now: number): Promise<number> => {
  const ageMs = CERTAIN_MS - (now - clock.now())
  await abortStaleUploads(blobs, { ageMs, isKnown: ({ key }) => !key.startsWith('files/') })
  let removed = 0
  await views.settled('files')
  for await (const { key } of blobs.list('files/')) {
    if (now - timeOf(key.slice(key.lastIndexOf('/') + 1)) < CERTAIN_MS) continue
    if (await isNamed(views, key)) continue
    await views.settled('files') // now the read model surely knows every fact that could name it
    if (await isNamed(views, key)) continue
    await blobs.remove(key)
    removed++
  }
  if (removed > 0) logger.info('Content that no file has was removed', { removed })
  return removed
}

const isNamed = async (views: Deps['views'], key: string): Promise<boolean> => {
  const { items } = await views.files.find({ equal: { key }, sort: 'path', limit: 1, offset: 0 })
  return items.length > 0
}
