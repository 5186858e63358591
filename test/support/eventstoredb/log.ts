import { clock } from '../../../src/clock.ts'
import { RecentIds } from './recentIds.ts'
import { DELETED, fieldsOf, firstShown, OF_METADATA, type Retention, retentionOf } from './retention.ts'
import { metaStreamOf, type Proposed, type Stored, TOMBSTONE } from './stored.ts'
import { firstEvents, metadata, systemEvent } from './systemEvents.ts'
import { type Expected, verdictOf } from './verdict.ts'

/** The outcome of an append. `actual` and `revision` are -1 if the stream does not exist. */
export type Appended =
  | { readonly kind: 'appended'; readonly revision: number; readonly position: number }
  | { readonly kind: 'wrong'; readonly actual: number }
  | { readonly kind: 'tombstoned' }

interface Stream {
  /** The events by revision, visible or not, without a tombstone. */
  readonly events: Stored[]
  retention: Retention
  tombstoned: boolean
}

/** The size of a chunk. A scavenge closes the current one. */
const CHUNK_BYTES = 256 << 20

/** Approximate overhead of a record in bytes. Positions are byte offsets. */
const RECORD_BYTES = 137

const NOTHING: Stream = { events: [], retention: {}, tombstoned: false }

/** The data of the stand-in: all events in one order, and by stream. It outlives restarts of a node. */
export class Log {
  #all: Stored[] = []
  readonly #streams = new Map<string, Stream>()
  readonly #recent = new RecentIds()
  readonly #listeners = new Set<() => void>()
  /** Positions of records without an event, which an empty append leaves. */
  readonly #blanks = new Set<number>()
  /** The position up to which the log has been scavenged. */
  #scavenged = 0
  #end = 1157

  constructor() {
    for (const [stream, event] of firstEvents()) this.append(stream, [event], 'any')
  }

  /** Every event, by position. */
  get all(): readonly Stored[] {
    return this.#all
  }

  /** The position that the next record gets. */
  get end(): number {
    return this.#end
  }

  /** Calls back after each change until the returned function is called. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** The events of a stream by revision, visible or not. */
  events(stream: string): readonly Stored[] {
    return this.#of(stream).events
  }

  /** The first visible revision. */
  firstShown(stream: string): number {
    const { events, retention } = this.#of(stream)
    return firstShown(events, retention)
  }

  /** Whether readers get an error for a missing stream. */
  isMissing(stream: string): boolean {
    return this.#of(stream).events.length === 0 || this.#isSoftDeleted(stream)
  }

  /** Whether a stream was ended for ever. Its metadata ends with it. */
  isTombstoned(stream: string): boolean {
    return this.#of(stream.startsWith('$$') ? stream.slice(2) : stream).tombstoned
  }

  /** Returns the index in `all` of the first event at or after a position. */
  indexOf(position: number): number {
    let low = 0
    let high = this.#all.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#all[middle] as Stored).position < position) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Whether a reader may begin at a position: at a record, beyond the end, or anywhere where events can have been removed. */
  isPlace(position: number): boolean {
    if (position < this.#scavenged || position >= this.#end || this.#blanks.has(position)) return true
    if (position === 0) return true
    return this.#all[this.indexOf(position)]?.position === position
  }

  append(stream: string, events: readonly Proposed[], expected: Expected): Appended {
    const { events: before } = this.#of(stream)
    if (this.isTombstoned(stream)) return { kind: 'tombstoned' }
    const situation = {
      events: before,
      softDeleted: this.#isSoftDeleted(stream),
      hasMetadata: this.#of(metaStreamOf(stream)).events.length > 0,
      recent: (id: string) => this.#recent.find(stream, id),
    }
    const ids = events.map(({ id }) => id)
    const verdict = verdictOf(situation, expected, ids)
    if (verdict.kind === 'wrong') return { kind: 'wrong', actual: before.length - 1 }
    if (verdict.kind === 'repeat') {
      const { revision, position } = verdict.last
      return { kind: 'appended', revision, position }
    }
    if (events.length === 0) return this.#appendNothing(before.length - 1)
    if (situation.softDeleted) this.#reopen(stream)
    let position = this.#end
    for (const event of events) position = this.#write(stream, event).position
    this.#changed()
    return { kind: 'appended', revision: this.events(stream).length - 1, position }
  }

  /** Hides all events of a stream. The next append opens it again with the next revision. */
  delete(stream: string, expected: Expected): Appended {
    const refused = this.#refusalOfEnd(stream, expected)
    return refused ?? this.append(metaStreamOf(stream), [metadata(`{"$tb":${2n ** 63n - 1n}}`)], 'any')
  }

  /** Ends a stream for ever. */
  tombstone(stream: string, expected: Expected): Appended {
    const refused = this.#refusalOfEnd(stream, expected)
    if (refused) return refused
    const { position } = this.#write(stream, systemEvent('$streamDeleted', ''))
    this.#changed()
    return { kind: 'appended', revision: TOMBSTONE, position }
  }

  /** Removes the events from `$all` that their streams hide, without the last one of each stream, and begins a new chunk. */
  scavenge(): void {
    this.#all = this.#all.filter(({ stream, revision }) => {
      const { length } = this.events(stream)
      return revision >= Math.min(this.firstShown(stream), length - 1)
    })
    this.#end = this.#scavenged = Math.ceil(this.#end / CHUNK_BYTES) * CHUNK_BYTES
  }

  #of(stream: string): Stream {
    return this.#streams.get(stream) ?? NOTHING
  }

  #made(stream: string): Stream {
    const made = this.#streams.get(stream) ?? {
      events: [],
      retention: stream.startsWith('$$') ? OF_METADATA : {},
      tombstoned: false,
    }
    this.#streams.set(stream, made)
    return made
  }

  #isSoftDeleted(stream: string): boolean {
    return this.#of(stream).retention.from === DELETED
  }

  #refusalOfEnd(stream: string, expected: Expected): Appended | undefined {
    const { events, tombstoned } = this.#of(stream)
    const actual = events.length - 1
    if (tombstoned) return { kind: 'tombstoned' }
    const fits = expected === 'none' ? actual === -1 : typeof expected === 'string' || expected === actual
    return actual === -1 || !fits ? { kind: 'wrong', actual } : undefined
  }

  #appendNothing(revision: number): Appended {
    const position = this.#end
    this.#blanks.add(position)
    this.#end += RECORD_BYTES
    return { kind: 'appended', revision, position }
  }

  /** Makes events after the deletion visible. */
  #reopen(stream: string): void {
    const { events } = this.#of(stream)
    const last = this.events(metaStreamOf(stream)).at(-1) as Stored // this event deleted the stream
    const fields = { ...fieldsOf(last), $tb: events.length }
    this.#write(metaStreamOf(stream), metadata(JSON.stringify(fields)))
  }

  #write(stream: string, event: Proposed): Stored {
    const into = this.#made(stream)
    const ends = event.type === '$streamDeleted'
    const stored: Stored = {
      ...event,
      stream,
      revision: ends ? TOMBSTONE : into.events.length,
      position: this.#end,
      created: clock.now(),
    }
    this.#end += RECORD_BYTES + event.data.length + event.metadata.length + stream.length + event.type.length
    this.#all.push(stored)
    if (ends) into.tombstoned = true
    else {
      into.events.push(stored)
      this.#recent.add(stored)
    }
    if (stream.startsWith('$$')) this.#made(stream.slice(2)).retention = retentionOf(stored)
    return stored
  }

  #changed(): void {
    for (const listener of this.#listeners) listener()
  }
}
