import type { Position } from '@eventstore/db-client'
import { clock } from '../../clock.ts'
import type { Cursor, Recorded } from '../../events/event.ts'
import type { Connection, Generation } from './connection.ts'
import { PAGE } from './portion.ts'
import type { Tail } from './tail.ts'
import { cursorOf } from './wire.ts'

const LOOK_EVERY_MS = 1000
/** A consumer with room that gets nothing for this long, although the log has an event for it, asks the server. */
const SILENT_MS = 5000
/** After this silence it joins again, although the server lists it as a consumer. */
const DEAF_MS = 20_000

/** The consumer as the watch sees it. */
export interface Watched {
  readonly name: string
  /** Selects the events that the server delivers to the group. */
  readonly matches: ((event: Recorded) => boolean) | undefined
  /** Whether the server may deliver another event: the buffer has room. */
  readonly hasRoom: () => boolean
  /** Whether no delivery waits for its acknowledgement. */
  readonly isIdle: () => boolean
  /** Called when the server no longer serves the consumer. */
  readonly onDeaf: () => void
}

/**
 * Notices a consumer of a group that its server does not serve. After a change of the leader, a call can stay open and
 * deliver nothing, without an error. The tail of the log shows that there is an event for the group:
 * W1: a consumer is deaf if the group has not passed that event and the server does not list the consumer or does not reply.
 * W2: consumers without room and consumers whose events go to others are not deaf.
 */
export class GroupWatch {
  readonly #connection: Connection
  readonly #generation: Generation
  readonly #tail: Tail
  readonly #watched: Watched
  readonly #timer = setInterval(() => void this.#look(), LOOK_EVERY_MS).unref()
  /** The place in the tail up to which it has looked. */
  #place: number
  /** An event for the group that the tail has heard since the last delivery. */
  #due: { readonly cursor: Cursor; readonly at: number } | undefined
  /** The newest event that was delivered, and whether one was delivered since the last look. */
  #delivered: Position | undefined
  #heard = false
  #asking = false
  #stopped = false

  constructor(connection: Connection, generation: Generation, tail: Tail, watched: Watched) {
    this.#connection = connection
    this.#generation = generation
    this.#tail = tail
    this.#watched = watched
    this.#place = tail.newest
    void tail.begun()
  }

  /** Records a delivery. */
  heard(position: Position | undefined): void {
    this.#heard = true
    if (position && (!this.#delivered || position.commit > this.#delivered.commit)) this.#delivered = position
  }

  stop(): void {
    this.#stopped = true
    clearInterval(this.#timer)
  }

  async #look(): Promise<void> {
    if (this.#heard) this.#beginAgain()
    if (!this.#watched.hasRoom()) return void (this.#due = undefined) // W2
    this.#due ??= this.#next()
    if (!this.#due || this.#asking) return
    const { cursor, at } = this.#due
    const silentMs = clock.monotonic() - at
    if (silentMs < SILENT_MS) return
    this.#asking = true
    const reply = await this.#ask(cursor)
    this.#asking = false
    if (this.#stopped || this.#heard) return
    if (reply === 'passed') this.#due = undefined
    else if (reply === 'not listed' || (silentMs >= DEAF_MS && this.#watched.isIdle())) this.#watched.onDeaf()
  }

  #beginAgain(): void {
    this.#heard = false
    this.#due = undefined
    if (this.#delivered) this.#place = this.#tail.nearestPlaceAfter(cursorOf(this.#delivered))
  }

  /** Returns the first event for the group after the place, and moves the place behind it. */
  #next(): { cursor: Cursor; at: number } | undefined {
    const { matches } = this.#watched
    for (;;) {
      const events = this.#tail.after(this.#place, PAGE)
      if (!events) {
        this.#place = this.#tail.newest // the tail forgot them, and later events show the same
        return undefined
      }
      const found = matches ? events.findIndex(matches) : events.length - 1
      const event = events[found]
      this.#place += event ? found + 1 : events.length
      if (event) return { cursor: event.cursor, at: clock.monotonic() }
      if (events.length === 0) return undefined
    }
  }

  /** Asks the server about the group. W1: a server that does not reply does not serve the consumer. */
  async #ask(due: Cursor): Promise<'passed' | 'listed' | 'not listed'> {
    const { client } = this.#generation
    try {
      const { stats, connections } = await this.#connection.reply(() =>
        client.getPersistentSubscriptionToAllInfo(this.#watched.name),
      )
      const checkpoint = stats.lastCheckpointedEventPosition
      if (checkpoint && cursorOf(checkpoint) >= due) return 'passed'
      const names = connections.map(({ connectionName }) => connectionName)
      return names.includes(client.connectionName) || names.includes('') ? 'listed' : 'not listed'
    } catch {
      return 'not listed'
    }
  }
}
