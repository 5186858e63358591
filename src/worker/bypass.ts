import { setTimeout as delay } from 'node:timers/promises'
import { messageOf } from '../errors.ts'
import type { Cursor, Recorded } from '../events/event.ts'
import type { Logger } from '../logger.ts'
import type { EventStore } from '../ports/eventStore.ts'
import type { Directory } from '../projections/directory.ts'
import { needsRoom } from './heldDeliveries.ts'
import { type Line, lineOfEvent } from './lines.ts'

/** Claims in progress at a time. */
const CONCURRENT = 32

/** The log is read again for a line that was passed over, at most once in this time, milliseconds. */
const AGAIN_MS = 1000

interface Deps {
  readonly store: Pick<EventStore, 'subscribe'>
  readonly views: { readonly directory: Pick<Directory, 'orgIdOf'> }
  readonly logger: Logger
}

/** How a worker claims events before their delivery. */
export interface ClaimsAhead {
  /** Whether a run of the line may be claimed now. */
  mayClaim(line: Line): boolean
  /** Claims what the event starts and begins it. Never rejects. */
  claim(line: Line, event: Recorded): Promise<void>
}

/**
 * Claims the events of other lines while held deliveries of some fill the window of the consumer group. It reads
 * the log ahead of the group, which delivers the same events later, finds them claimed and acknowledges them. It is only
 * a shortcut: without it, events wait longer, and none is lost.
 */
export class Bypass {
  readonly #deps: Deps
  readonly #host: ClaimsAhead
  /** For lines that were passed over: a position before their first event that was not claimed. */
  readonly #passed = new Map<Line, Cursor>()
  #reading: AbortController | undefined

  constructor(deps: Deps, host: ClaimsAhead) {
    this.#deps = deps
    this.#host = host
  }

  get isOpen(): boolean {
    return this.#reading !== undefined
  }

  /** Reads the log after a position until `close`. */
  open(after: Cursor): void {
    if (this.#reading) return
    const reading = new AbortController()
    this.#reading = reading
    void this.#run(after, reading.signal)
  }

  close(): void {
    this.#reading?.abort()
    this.#reading = undefined
    this.#passed.clear()
  }

  async #run(after: Cursor, signal: AbortSignal): Promise<void> {
    let from = after
    while (!signal.aborted) {
      try {
        from = await this.#read(from, signal)
      } catch (error) {
        this.#deps.logger.warn('The log could not be read ahead of its deliveries', {
          error: messageOf(error),
        })
        await delay(AGAIN_MS, undefined, { signal, ref: false }).catch(() => {})
      }
    }
  }

  /** Resolves with the position from which to read again. */
  async #read(after: Cursor, signal: AbortSignal): Promise<Cursor> {
    const claiming = new Set<Promise<void>>()
    const ending = new AbortController()
    const until = AbortSignal.any([signal, ending.signal])
    const types = ['EventPublished', 'RunRequested'] as const
    let before = after
    const again = setInterval(() => {
      if (this.#passedWithRoom() !== undefined) ending.abort()
    }, AGAIN_MS)
    again.unref()
    try {
      for await (const { events, cursor } of this.#deps.store.subscribe({ after, types, signal: until })) {
        for (const event of events) {
          const org_id = this.#deps.views.directory.orgIdOf(event.metadata.env_id ?? '')
          const line = lineOfEvent(org_id, event)
          if (needsRoom(event) && !this.#host.mayClaim(line)) {
            if (!this.#passed.has(line)) this.#passed.set(line, before)
          } else {
            const claim = this.#host.claim(line, event).finally(() => claiming.delete(claim))
            claiming.add(claim)
            if (claiming.size >= CONCURRENT) await Promise.race(claiming)
          }
          before = event.cursor
        }
        before = cursor
      }
    } finally {
      clearInterval(again)
    }
    const passed = this.#passedWithRoom()
    if (passed === undefined) return before
    this.#passed.clear()
    return passed
  }

  /** The first position of a line that was passed over and has room now. */
  #passedWithRoom(): Cursor | undefined {
    let first: Cursor | undefined
    for (const [line, position] of this.#passed)
      if (this.#host.mayClaim(line) && (first === undefined || position < first)) first = position
    return first
  }
}
