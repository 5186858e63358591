import { setTimeout as delay } from 'node:timers/promises'
import type { StoredRow } from '../../../ports/storedLog.ts'
import type { Slices } from '../../../loops/slices.ts'
import type { Recent } from '../../shared/recent.ts'
import type { Log } from './log.ts'
import { type Element, elementsIn, isEntry } from './logRows.ts'
import { type Removed, withoutThem } from './shrunkRow.ts'
import type { StreamIndex } from './streamIndex.ts'

/** Pause after a write, milliseconds: each write syncs the log, and appends wait for it. */
const PAUSE_MS = 10

/** Characters of rows that are replaced in one commit. */
const REPLACED_LENGTH = 256 << 10

/** The parts of the event store that lose events. */
interface Store {
  readonly log: Log
  readonly index: StreamIndex
  readonly recent: Recent
  /** The logs that backups in progress are reading. */
  readonly copied: Iterable<{ readonly position: number }>
  /** Makes pending appends durable and the index complete. Throws `unavailable`. */
  settle(): void
}

/** An event to remove, or what is left of one. */
interface Gone extends Removed {
  readonly isEvent: boolean
}

/**
 * Removes the expired events of the log, then gives space back to the disk. Resolves with the number of removed events.
 * V1: a row keeps its positions: what is removed becomes a number, and the checksum is computed again.
 * V2: the newest event of a stream leaves its stream and revision, so the stream does not begin again.
 * V3: a stream loses its oldest events first, so what is left has no gaps.
 * V4: the log changes before the index. An entry that a crash leaves in the index is removed with the next events.
 * V5: the newest event of a stream at the position of a backup in progress, or what is left of it, stays with all later ones.
 * Otherwise, a copy could end before an expired event of the stream, and nothing in it would show that.
 */
export const scavenge = async (store: Store, slices: Slices, signal: AbortSignal): Promise<number> => {
  const { log } = store
  let removed = 0
  let position = 1
  while (log.retentions.isAny && !signal.aborted) {
    await slices.take()
    if (signal.aborted) break
    const part = scavengeFrom(store, position, slices)
    removed += part.removed
    if (part.isLast) break
    position = part.next
    if (part.removed > 0) await paused(signal)
  }
  while (!signal.aborted) {
    await slices.take()
    if (signal.aborted || !log.shrink()) break
    await paused(signal)
  }
  return removed
}

/** Aborts do not reject it: the caller looks at the signal. */
const paused = (signal: AbortSignal): Promise<void> =>
  delay(PAUSE_MS, undefined, { signal, ref: false }).catch(() => {})

/** Removes expired events in the rows from a position, as many as one turn of the event loop allows. */
const scavengeFrom = (store: Store, position: number, slices: Slices) => {
  const { log, index, recent } = store
  store.settle()
  const { keptFrom } = log.retentions
  const oldest = new Oldest(store)
  const rows: StoredRow[] = []
  const removed: Gone[] = []
  let [next, length, isLast] = [position, 0, false]
  do {
    isLast = next > log.last
    if (isLast) break
    const row = log.rows.rowAt(next)
    const elements = elementsIn(row.text)
    const gone = goneOf(store, row.first, elements, oldest)
    if (gone.length > 0) rows.push(withoutThem(row, elements, gone))
    removed.push(...gone)
    length += gone.length > 0 ? row.text.length : 0
    next = row.first + row.count
    isLast = elements.some((element) => isEntry(element) && element[3] >= keptFrom)
  } while (!isLast && length < REPLACED_LENGTH && slices.left > 0)
  if (rows.length > 0) log.replace(rows) // V4
  for (const each of removed) {
    recent.remove(each.position)
    if (!each.isNewest) index.remove(each.stream, each)
  }
  if (removed.length > 0) index.commit()
  return { removed: removed.filter(({ isEvent }) => isEvent).length, next, isLast }
}

const goneOf = (
  store: Store,
  first: number,
  elements: readonly Element[],
  oldest: Oldest,
): readonly Gone[] => {
  const { log, index } = store
  const gone: Gone[] = []
  let position = first
  for (const element of elements) {
    if (typeof element === 'number') {
      position += element
      continue
    }
    const [stream, revision] = element
    const isEvent = isEntry(element)
    const isNewest = revision === index.headOf(stream)
    const mayGo = isEvent ? element[3] < log.retentions.expiredBefore(stream) : !isNewest
    if (!isEvent) oldest.dropBefore(stream, revision)
    if (mayGo && !isCopied(store, { stream, revision, position }) && oldest.is(stream, revision))
      gone.push({ stream, revision, position, isNewest, isEvent })
    position++
  }
  return gone
}

/** Whether an event is the newest one of its stream at the position of a backup in progress (V5). */
const isCopied = (
  { copied, index }: Store,
  { stream, revision, position }: Pick<Gone, 'stream' | 'revision' | 'position'>,
): boolean => {
  const ends = [...copied].filter((log) => log.position >= position)
  if (ends.length === 0) return false
  const [next = Infinity] = index.positionsOf(stream, revision + 1, 1).positions
  return ends.some((log) => log.position < next)
}

/** The oldest revision that each stream still has (V3). */
class Oldest {
  readonly #store: Store
  readonly #of = new Map<string, number>()

  constructor(store: Store) {
    this.#store = store
  }

  /** Whether an event is the oldest of its stream; then it counts as removed. */
  is(stream: string, revision: number): boolean {
    const oldest = this.#of.get(stream) ?? this.#before(stream, revision)
    const is = revision <= oldest
    this.#of.set(stream, is ? revision + 1 : oldest)
    return is
  }

  /** Removes what a crash has left in the index before the remains of an event (V4). */
  dropBefore(stream: string, revision: number): void {
    const { index } = this.#store
    for (let oldest = index.oldestOf(stream); oldest && oldest.revision < revision;) {
      index.remove(stream, oldest)
      oldest = index.oldestOf(stream)
    }
  }

  /** Returns the revision of the oldest event, if it is before another one. */
  #before(stream: string, revision: number): number {
    const { index, log } = this.#store
    for (;;) {
      const oldest = index.oldestOf(stream)
      if (!oldest || oldest.revision >= revision) return revision
      if (log.rows.has(oldest.position)) return oldest.revision
      index.remove(stream, oldest) // V4
    }
  }
}
