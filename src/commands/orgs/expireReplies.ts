import { isoOf } from '../../clock.ts'
import { REPLIES, replyDayOf } from '../../content/replyKey.ts'
import { REPLAYED_MS } from '../idempotency.ts'
import type { CommandDeps } from '../deps.ts'

/** Like their facts, replies remain for longer than they are replayed, because clocks differ. */
const KEPT_MS = 2 * REPLAYED_MS

/**
 * Removes the large replies of `Idempotency-Key`s that are free again, also under a plan that keeps all calls: nothing
 * names them any more. `now`: milliseconds since 1970. Resolves with their number.
 */
export const expireReplies = async (
  { blobs }: Pick<CommandDeps, 'blobs'>,
  { now }: { readonly now: number },
): Promise<number> => {
  const keptFrom = isoOf(now - KEPT_MS).slice(0, 10)
  let removed = 0
  for await (const { key } of blobs.list(REPLIES)) {
    if (replyDayOf(key) >= keptFrom) continue
    await blobs.remove(key)
    removed++
  }
  return removed
}
