import type { Cursor } from '../../events/event.ts'
import { type Background, keepGoing } from '../../loops/keepGoing.ts'
import type { EventStore } from '../../ports/eventStore.ts'
import { envFrame, envTypes } from './envFrames.ts'
import { RunPlaces } from '../../commands/streams/runPlaces.ts'
import { MAX_QUEUED_BYTES, type SseReply } from './sse.ts'

/** Recent frames that a feed keeps for clients that are slightly behind, and their bytes. */
const KEPT = 2048
const KEPT_BYTES = 4 << 20

/** A feed without clients ends at the next look after this time, milliseconds. */
const IDLE_MS = 30_000

/** A client of a feed. */
export type FeedClient = Pick<SseReply, 'gone' | 'push' | 'write' | 'flushed'>

interface Entry {
  readonly cursor: Cursor
  readonly bytes: Buffer
}

/**
 * The activity of one environment on this node: one subscription whose frames are built once for all clients.
 * F1: a client gets every frame after its cursor once and in order (I5). It reads the log itself until the feed has
 * all further frames, and is then attached at exactly that point. A client that another node served may be ahead of the
 * feed: it gets no frame up to its cursor again.
 */
class EnvFeed {
  readonly #clients = new Set<FeedClient>()
  /** Clients that another node served beyond the position of this feed, by the cursor of their last frame. */
  readonly #ahead = new Map<FeedClient, Cursor>()
  /** Clients that read the log and will be attached later. */
  approaching = 0
  readonly #kept: Entry[] = []
  #keptBytes = 0
  /** The feed keeps all its frames after this cursor. */
  #floor: Cursor
  #position: Cursor

  constructor(position: Cursor) {
    this.#floor = position
    this.#position = position
  }

  get isIdle(): boolean {
    return this.#clients.size === 0 && this.#ahead.size === 0 && this.approaching === 0
  }

  async run(store: EventStore, env_id: string, signal: AbortSignal): Promise<void> {
    const places = new RunPlaces(store)
    for await (const { events, cursor } of store.subscribe({
      after: this.#position,
      env_id,
      types: envTypes,
      signal,
    })) {
      const frames: Entry[] = []
      for (const event of events) {
        const bytes = await envFrame(event, places)
        if (bytes) frames.push({ cursor: event.cursor, bytes })
      }
      // No client is attached between here and the push (F1).
      for (const entry of frames) {
        this.#kept.push(entry)
        this.#keptBytes += entry.bytes.length
      }
      this.#position = cursor
      this.#forget()
      if (frames.length > 0) {
        const together = joined(frames)
        for (const client of this.#clients) client.push(together)
      }
      if (this.#ahead.size > 0) this.#catchUp(frames)
    }
  }

  /** Sends the frames to the clients that are ahead of them, as far as they are new. */
  #catchUp(frames: readonly Entry[]): void {
    for (const [client, after] of this.#ahead) {
      const fresh = frames.filter(({ cursor }) => cursor > after)
      if (fresh.length > 0) client.push(joined(fresh))
      if (this.#position < after) continue
      this.#ahead.delete(client)
      if (!client.gone.aborted) this.#clients.add(client)
    }
  }

  /**
   * Attaches a client that has everything up to `after`, unless it has left. Returns false if the feed no longer has the
   * next frames, or there are too many for a client that may not read them.
   */
  attach(client: FeedClient, after: Cursor): boolean {
    if (client.gone.aborted) return true // its signal has fired: nothing would remove it
    if (after < this.#floor) return false
    const missed = this.#kept.filter(({ cursor }) => cursor > after).map(({ bytes }) => bytes)
    if (missed.reduce((size, { length }) => size + length, 0) > MAX_QUEUED_BYTES) return false
    for (const bytes of missed) client.write(bytes)
    if (after > this.#position) this.#ahead.set(client, after)
    else this.#clients.add(client)
    client.gone.addEventListener('abort', () => this.#remove(client), { once: true })
    return true
  }

  #remove(client: FeedClient): void {
    this.#clients.delete(client)
    this.#ahead.delete(client)
  }

  #forget(): void {
    let tooMany = this.#kept.length - KEPT
    if (this.#keptBytes > KEPT_BYTES) tooMany = Math.max(tooMany, Math.ceil(this.#kept.length / 2))
    else if (tooMany < KEPT / 2) return // in large steps, because removal from the front moves the rest of the array
    this.#floor = (this.#kept[tooMany - 1] as Entry).cursor
    for (const { bytes } of this.#kept.splice(0, tooMany)) this.#keptBytes -= bytes.length
  }
}

const joined = (frames: readonly Entry[]): Buffer => {
  const [first] = frames
  return first && frames.length === 1 ? first.bytes : Buffer.concat(frames.map(({ bytes }) => bytes))
}

/** The feeds of the environments with clients on this node. */
export class EnvFeeds {
  readonly #store: EventStore
  readonly #background: Background
  readonly #idleMs: number
  readonly #feeds = new Map<string, EnvFeed>()

  constructor(store: EventStore, background: Background, { idleMs = IDLE_MS } = {}) {
    this.#store = store
    this.#background = background
    this.#idleMs = idleMs
  }

  /** Sends every frame of the environment after the cursor to the client until it disconnects. */
  async serve(client: FeedClient, env_id: string, after: Cursor): Promise<void> {
    const feed = await this.#feedOf(env_id)
    if (feed.attach(client, after)) return
    feed.approaching++
    try {
      await this.#approach(feed, client, env_id, after)
    } finally {
      feed.approaching--
    }
  }

  /** Reads the log for the client until the feed has all further frames. */
  async #approach(feed: EnvFeed, client: FeedClient, env_id: string, after: Cursor): Promise<void> {
    const places = new RunPlaces(this.#store)
    for await (const { events, cursor } of this.#store.subscribe({
      after,
      env_id,
      types: envTypes,
      signal: client.gone,
    })) {
      for (const event of events) {
        const bytes = await envFrame(event, places)
        if (bytes) client.write(bytes)
        await client.flushed()
      }
      if (feed.attach(client, cursor)) return
    }
  }

  async #feedOf(env_id: string): Promise<EnvFeed> {
    const known = this.#feeds.get(env_id)
    if (known) return known
    const head = await this.#store.head()
    const raced = this.#feeds.get(env_id)
    if (raced) return raced
    const feed = new EnvFeed(head)
    this.#feeds.set(env_id, feed)
    const idle = new AbortController()
    const signal = AbortSignal.any([this.#background.signal, idle.signal])
    void keepGoing(`The feed of environment ${env_id}`, (until) => feed.run(this.#store, env_id, until), {
      ...this.#background,
      signal,
    })
    const sweep = setInterval(() => {
      if (!feed.isIdle && !this.#background.signal.aborted) return
      clearInterval(sweep)
      this.#feeds.delete(env_id)
      idle.abort()
    }, this.#idleMs).unref()
    return feed
  }
}
