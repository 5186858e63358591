import { unavailable } from '../sqlite.ts'
import { positionOf } from './cursors.ts'
import type { Log } from './log.ts'
import { BATCH, BATCH_LENGTH } from './reader.ts'
import type { Refusals } from './refusals.ts'
import type { StreamIndex } from './streamIndex.ts'

interface Parts {
  readonly log: Log
  readonly index: StreamIndex
  readonly refusals: Refusals
}

/**
 * Throws `unavailable` unless the index is complete. The first request after a failed write mends it. If that fails, only the next
 * probe does: each attempt reads the log and delays everything else.
 */
export const demandIndex = (parts: Parts): void => {
  if (parts.index.whole) return
  if (parts.refusals.isPending && !parts.index.isDamaged) parts.index.demandWhole()
  mendIndex(parts)
}

/** Updates an index that could not be written (disk full). Throws `unavailable`, also for damage. */
export const mendIndex = ({ log, index, refusals }: Parts): void => {
  if (index.whole) return
  if (index.isDamaged) index.refuse()
  try {
    index.restore(() => catchUpIndex(log, index))
    index.demandWhole()
  } catch (error) {
    if (index.isDamaged) index.refuse(error)
    refusals.failed(error)
    throw unavailable(error)
  }
}

/** Adds the events that the index lacks. An index of another log, or with more events than the log, is built again. */
export const catchUpIndex = (log: Log, index: StreamIndex): void => {
  const isAnotherLog = ![undefined, log.id].includes(index.logId)
  if (isAnotherLog || index.last > log.last) index.reset(log.last, { isAnotherLog })
  while (index.last < log.last && index.whole) {
    const { events, remains, upTo } = log.rows.readAfter(index.last, BATCH, BATCH_LENGTH)
    const stored = remains.length === 0 ? events : [...events, ...remains].toSorted(byCursor)
    for (const each of stored) index.add(each, positionOf(each.cursor))
    index.reach(upTo)
  }
  index.commit()
}

const byCursor = (a: { cursor: string }, b: { cursor: string }): number => (a.cursor < b.cursor ? -1 : 1)
