import { isDeepStrictEqual } from 'node:util'
import { setTimeout as delay } from 'node:timers/promises'
import type { Doc, Stored, WritableCollection } from '../ports/readModels.ts'

/** A document that two collections should have alike. Null: it is missing. */
export interface Difference {
  readonly id: string
  readonly before: Doc | null
  readonly after: Doc | null
}

export interface Comparison {
  readonly documents: number
  readonly differences: number
  readonly first: readonly Difference[]
}

const IDS_PER_READ = 500
/** Differences that are reported with their documents. */
const FIRST = 10

/** Pauses and attempts until both collections contain the same events of a document. */
const PAUSE_MS = 50
const ATTEMPTS = 100

const docIn = (stored: ReadonlyMap<string, Stored>, id: string): Doc | null => stored.get(id)?.doc ?? null

/**
 * Compares every document of two collections that follow the same log. Both may move meanwhile: documents that differ are
 * read again until both are from the same event.
 */
export const compareDocuments = async (
  before: WritableCollection,
  after: WritableCollection,
  signal: AbortSignal,
): Promise<Comparison> => {
  let documents = 0
  let differences = 0
  const first: Difference[] = []
  const compare = async (ids: readonly string[]): Promise<void> => {
    let left = ids
    for (let attempt = 1; left.length > 0 && !signal.aborted; attempt++) {
      const [old, current] = await Promise.all([before.stored(left), after.stored(left)])
      const different = left.filter((id) => !isDeepStrictEqual(docIn(old, id), docIn(current, id)))
      const moving = different.filter((id) => old.get(id)?.cursor !== current.get(id)?.cursor)
      const isLast = attempt === ATTEMPTS
      for (const id of different.filter((each) => isLast || !moving.includes(each))) {
        differences++
        if (first.length < FIRST) first.push({ id, before: docIn(old, id), after: docIn(current, id) })
      }
      left = isLast ? [] : moving
      if (left.length > 0) await delay(PAUSE_MS, undefined, { signal }).catch(() => {})
    }
  }
  for await (const ids of idsIn(after)) {
    documents += ids.length
    await compare(ids)
  }
  for await (const ids of idsIn(before)) {
    const compared = await after.stored(ids)
    const missing = ids.filter((id) => !compared.has(id))
    documents += missing.length
    await compare(missing)
  }
  return { documents, differences, first }
}

async function* idsIn(collection: WritableCollection): AsyncGenerator<readonly string[]> {
  let ids: string[] = []
  for await (const [id] of collection.entries()) {
    if (ids.push(id) < IDS_PER_READ) continue
    yield ids
    ids = []
  }
  yield ids
}
