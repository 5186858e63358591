import { isDeepStrictEqual } from 'node:util'
import { setTimeout as delay } from 'node:timers/promises'
import { type Cursor, START } from '../events/event.ts'
import type { Doc, Stored, WritableCollection } from '../ports/readModels.ts'

/** A document that two collections should have alike. Null: it is missing. */
export interface Difference {
  readonly id: string
  readonly before: Doc | null
  readonly after: Doc | null
}

type Compared = Pick<WritableCollection, 'stored' | 'entries' | 'checkpoint'>

const IDS_PER_READ = 500
/** Differences that are reported with their documents. */
const FIRST = 10

/** Rounds in which documents that changed meanwhile are compared again, and the pause before each, milliseconds. */
const ROUNDS = 5
const PAUSE_MS = 100

const docIn = (stored: ReadonlyMap<string, Stored>, id: string): Doc | null => stored.get(id)?.doc ?? null

/**
 * Compares the documents of two collections that follow the same log. Both may move meanwhile: a document counts as
 * different only if both collections contain its newest event. The others are compared when both have ended at one position.
 */
export class Comparison {
  readonly #before: Compared
  readonly #after: Compared
  /** Documents that differed before both collections contained the same events of them. */
  #moving: string[] = []
  #differences = 0
  readonly #first: Difference[] = []

  constructor(before: Compared, after: Compared) {
    this.#before = before
    this.#after = after
  }

  /** Compares every document while both collections move. */
  async run(signal: AbortSignal): Promise<void> {
    for await (const ids of idsIn(this.#after)) await this.#compare(ids, signal)
    for await (const ids of idsIn(this.#before)) {
      const compared = await this.#after.stored(ids)
      const missing = ids.filter((id) => !compared.has(id))
      await this.#compare(missing, signal)
    }
    for (let round = 0; round < ROUNDS && this.#moving.length > 0; round++) {
      await delay(PAUSE_MS, undefined, { signal })
      const moving = this.#moving.splice(0)
      for (const ids of chunks(moving)) await this.#compare(ids, signal)
    }
  }

  /** Compares the rest. Both collections contain the same events, and do not move. */
  async end(): Promise<{ differences: number; first_differences: readonly Difference[] }> {
    for (const ids of chunks(this.#moving)) {
      const [old, current] = await Promise.all([this.#before.stored(ids), this.#after.stored(ids)])
      for (const id of ids) this.#note({ id, before: docIn(old, id), after: docIn(current, id) })
    }
    this.#moving = []
    return { differences: this.#differences, first_differences: this.#first }
  }

  async #compare(ids: readonly string[], signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (ids.length === 0) return
    const [reached, newReached] = await Promise.all([this.#before.checkpoint(), this.#after.checkpoint()])
    const [old, current] = await Promise.all([this.#before.stored(ids), this.#after.stored(ids)])
    for (const id of ids) {
      const cursors = [old.get(id)?.cursor ?? reached, current.get(id)?.cursor ?? newReached] // its removal may be forgotten
      const difference = { id, before: docIn(old, id), after: docIn(current, id) }
      if (cursors.every((cursor) => isIn(cursor, reached) && isIn(cursor, newReached))) this.#note(difference)
      else if (!isDeepStrictEqual(difference.before, difference.after)) this.#moving.push(id)
    }
  }

  #note(difference: Difference): void {
    if (isDeepStrictEqual(difference.before, difference.after)) return
    this.#differences++
    if (this.#first.length < FIRST) this.#first.push(difference)
  }
}

const isIn = (cursor: Cursor | null, reached: Cursor | null): boolean =>
  (cursor ?? START) <= (reached ?? START)

function* chunks(ids: readonly string[]): Generator<readonly string[]> {
  for (let at = 0; at < ids.length; at += IDS_PER_READ) yield ids.slice(at, at + IDS_PER_READ)
}

async function* idsIn(collection: Pick<WritableCollection, 'entries'>): AsyncGenerator<readonly string[]> {
  let ids: string[] = []
  for await (const [id] of collection.entries()) {
    if (ids.push(id) < IDS_PER_READ) continue
    yield ids
    ids = []
  }
  yield ids
}
