import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Cursor, type Recorded, START } from '../events/event.ts'
import type { EventType } from '../events/index.ts'
import type { Batch, EventStore, Filter } from '../ports/eventStore.ts'

type Subscription = Filter & { readonly after?: Cursor; readonly signal: AbortSignal }

/** The time that the others wait for a slow reader, milliseconds. Embedded read models take a page in much less. */
const PATIENCE_MS = 500
/**
 * The same for a read of the whole log, also before its first page, because a server creates collections. New read models are
 * used when they contain the whole log, and one that is left behind reads and parses the rest again.
 */
const NEW_PATIENCE_MS = 5000

/** A reader of a shared read. It has taken its page when `page` is null. */
interface Member {
  /** The types of its facts; null: all facts. */
  readonly wanted: ReadonlySet<string> | null
  page: Batch | null
  /** It was too slow: it gets no further page. */
  isLeft: boolean
  wake: () => void
}

/**
 * The log, for readers that begin at the same position: it is read and parsed once for all of them. R1: each reader
 * gets what `subscribe` of the store would give it. R2: readers are at most one page apart, so pages do not pile up.
 * R3: a reader that ends holds up no other, and a slow one only for its patience. At the end of the log each reader continues by itself, because the pauses
 * of one must not delay another; the same applies after an error, which may concern one reader only.
 * R4: a read of the whole log begins when all expected readers have begun, or after `NEW_PATIENCE_MS`.
 */
export class SharedReads {
  readonly #store: Pick<EventStore, 'subscribe'>
  /** The reads that have not begun yet, by position. */
  readonly #beginning = new Map<Cursor, SharedRead>()
  readonly #expected = new Set<Promise<void>>()

  constructor(store: Pick<EventStore, 'subscribe'>) {
    this.#store = store
  }

  /** Expects a reader. The returned function reports that it has begun, or that it does not begin. */
  expect(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#expected.add(promise)
    return () => {
      this.#expected.delete(promise)
      resolve()
    }
  }

  async *subscribe({ after = START, signal, ...filter }: Subscription): AsyncGenerator<Batch> {
    let position = after
    for await (const page of this.#readAt(after).join(filter.types ?? null, signal)) {
      yield page
      position = page.cursor
    }
    if (!signal.aborted) yield* this.#store.subscribe({ ...filter, after: position, signal })
  }

  #readAt(after: Cursor): SharedRead {
    const known = this.#beginning.get(after)
    if (known) return known
    const read = new SharedRead(after === START ? NEW_PATIENCE_MS : PATIENCE_MS)
    this.#beginning.set(after, read)
    void this.#allBegun(after).then(() => {
      this.#beginning.delete(after)
      void read.run(this.#store, after)
    })
    return read
  }

  /** Resolves when those that begin in this turn have begun, and the expected ones (R4). */
  async #allBegun(after: Cursor): Promise<void> {
    if (after === START && this.#expected.size > 0) {
      const tooLate = Promise.withResolvers<void>()
      const timer = setTimeout(tooLate.resolve, NEW_PATIENCE_MS)
      await Promise.race([Promise.all(this.#expected), tooLate.promise])
      clearTimeout(timer)
    }
    await nextTurn()
  }
}

class SharedRead {
  readonly #members = new Set<Member>()
  /** The types that the members want; null: all facts. */
  #types: Set<EventType> | null = new Set()
  readonly #unread = new AbortController()
  readonly #patienceMs: number
  #hasEnded = false
  #taken: () => void = () => {}

  constructor(patienceMs: number) {
    this.#patienceMs = patienceMs
  }

  /** Yields the pages up to the end of the log, or until the read fails. */
  async *join(types: readonly EventType[] | null, signal: AbortSignal): AsyncGenerator<Batch> {
    const member: Member = { wanted: types && new Set(types), page: null, isLeft: false, wake: () => {} }
    const wake = () => member.wake()
    if (!types) this.#types = null
    else for (const type of types) this.#types?.add(type)
    this.#members.add(member)
    signal.addEventListener('abort', wake)
    try {
      while (!signal.aborted) {
        const { page } = member
        if (page) {
          member.page = null
          this.#taken()
          yield page
        } else if (this.#hasEnded || member.isLeft) return
        else await new Promise<void>((resolve) => (member.wake = resolve))
      }
    } finally {
      signal.removeEventListener('abort', wake)
      this.#members.delete(member)
      if (this.#members.size === 0) this.#unread.abort()
      this.#taken()
    }
  }

  async run(store: Pick<EventStore, 'subscribe'>, after: Cursor): Promise<void> {
    try {
      const types = this.#types && [...this.#types]
      const pages = store.subscribe({ after, ...(types && { types }), signal: this.#unread.signal })
      for await (const page of pages) {
        this.#give(page)
        if (page.caughtUp) break
        await this.#allTook()
      }
    } catch {
      // Each member reads the rest by itself and finds out whether the error concerns it.
    } finally {
      this.#hasEnded = true
      for (const { wake } of this.#members) wake()
    }
  }

  #give({ events, ...page }: Batch): void {
    const given = new Map([...this.#members].map((member) => [member, [] as Recorded[]]))
    const byType = new Map<EventType, Recorded[][]>()
    for (const recorded of events) {
      const { type } = recorded.event
      let takers = byType.get(type)
      if (!takers) {
        takers = [...given].flatMap(([{ wanted }, taken]) => (!wanted || wanted.has(type) ? [taken] : []))
        byType.set(type, takers)
      }
      for (const taken of takers) taken.push(recorded)
    }
    for (const [member, taken] of given) {
      member.page = { ...page, events: taken }
      member.wake()
    }
  }

  /** Resolves when each member has taken its page, or is left behind. */
  async #allTook(): Promise<void> {
    const tooLate = setTimeout(() => this.#leaveSlow(), this.#patienceMs)
    while (this.#isHeld()) await new Promise<void>((resolve) => (this.#taken = resolve))
    clearTimeout(tooLate)
  }

  #isHeld(): boolean {
    for (const { page } of this.#members) if (page) return true
    return false
  }

  /** The members that have not taken their page go on by themselves after it. */
  #leaveSlow(): void {
    for (const member of this.#members) {
      if (!member.page) continue
      member.isLeft = true
      this.#members.delete(member)
    }
    if (this.#members.size === 0) this.#unread.abort()
    this.#taken()
  }
}
