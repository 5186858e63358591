import type { Recorded } from '../../../events/event.ts'
import type { Recent } from '../../shared/recent.ts'
import { unavailable } from '../sqlite.ts'
import type { Log } from './log.ts'
import type { LogPart } from './storedRows.ts'
import type { StreamIndex } from './streamIndex.ts'

/** Events of one batch. */
export const BATCH = 1024
/** Characters in the log of one batch: a slow reader keeps its batch in memory. */
export const BATCH_LENGTH = 1 << 20

/** A part of a stream. */
interface StreamPart {
  readonly events: readonly Recorded[]
  /** The revision after the part; it moves past events that have expired. */
  readonly next: number
  /** The stream may have further events. */
  readonly isCut: boolean
}

interface Parts {
  readonly log: Log
  readonly index: StreamIndex
  readonly recent: Recent
  /** Throws `unavailable` if the store is closed or its index cannot be completed. */
  readonly ready: () => void
}

/** Reads the log and its streams: the newest events from memory, others from the disk. */
export class Reader {
  readonly #log: Log
  readonly #index: StreamIndex
  readonly #recent: Recent
  readonly #ready: () => void

  constructor({ log, index, recent, ready }: Parts) {
    this.#log = log
    this.#index = index
    this.#recent = recent
    this.#ready = ready
  }

  /** The revision of the newest event of a stream, which may not be durable yet; -1 if there is none. */
  headOf(stream: string): number {
    try {
      return this.#index.headOf(stream)
    } catch (error) {
      throw unavailable(error)
    }
  }

  /** `length`: characters in the log. `expired`: also returns events that have expired and are still stored. */
  readStream(
    stream: string,
    from: number,
    limit: number,
    { length = BATCH_LENGTH, expired = false }: { length?: number; expired?: boolean } = {},
  ): StreamPart {
    this.#ready()
    try {
      const { retentions } = this.#log
      const keptFrom = expired ? '' : retentions.expiredBefore(stream)
      const { first, positions } = this.#index.positionsOf(stream, from, limit)
      if (first !== from && !retentions.isAny) this.#index.refuse()
      const events: Recorded[] = []
      let left = length
      let next = first
      for (const at of positions) {
        if (left <= 0) break
        const found = this.#at(at)
        const isWrong = found
          ? found.event.stream !== stream || found.event.revision !== next
          : events.length > 0 // only the beginning of a stream is ever removed
        if (isWrong) this.#index.refuse()
        if (found && (events.length > 0 || found.event.at >= keptFrom)) events.push(found.event)
        next++
        left -= found?.length ?? 1
      }
      const isCut = next - first < positions.length || positions.length === limit
      return { events, next: positions.length === 0 ? from : next, isCut }
    } catch (error) {
      throw unavailable(error)
    }
  }

  /** Reads up to `BATCH` positions or `BATCH_LENGTH` characters after a position, and at least one row. */
  readLog(after: number): Pick<LogPart, 'events' | 'upTo'> {
    try {
      return this.#recent.after(after, BATCH) ?? this.#log.rows.readAfter(after, BATCH, BATCH_LENGTH)
    } catch (error) {
      throw unavailable(error)
    }
  }

  #at(position: number): { readonly event: Recorded; readonly length: number } | null {
    const event = this.#recent.at(position)
    return event ? { event, length: this.#recent.lengthAt(position) } : this.#log.rows.at(position)
  }
}
