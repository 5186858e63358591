import type { Collection as Documents } from 'mongodb'
import type { Cursor } from '../../events/event.ts'
import { slices } from '../../loops/slices.ts'
import type { Change, CollectionSpec, Doc, Query, Stored, Version, Write } from '../../ports/readModels.ts'
import { columnOf, fieldOf } from '../shared/columns.ts'
import {
  AFTER,
  BEFORE,
  type Beside,
  countedBy,
  type CountedIndex,
  countedIndexes,
  facetAsked,
  facetOf,
  type Passed,
  passed,
  stepKey,
  type Side,
} from '../shared/facets.ts'
import { collectionName, COUNTS } from './collections.ts'
import { docOf, type Envelope } from './envelope.ts'
import { Envelopes } from './envelopes.ts'
import { ask } from './failures.ts'
import type { Server } from './server.ts'

/** The collection with the counts of a version. */
export const countsName = (version: Version): string => `${collectionName(version)}${COUNTS}`

/** A count with the position of its newest change. */
interface Count {
  readonly n: number
  /** Counts by the rest of the longest prefix: one document has the minutes of an hour. */
  readonly by?: { readonly [rest: string]: number }
}

/** Changes of one count, in the order of the log. */
interface Plan {
  cursor: Cursor
  readonly steps: { readonly cursor: Cursor; readonly n: 1 | -1; readonly rest: string | undefined }[]
}

/**
 * The number of documents by the values of counted indexes, like `Counts` of the embedded engine, but without transactions.
 * A count stays exact although batches are repeated, cut, or applied by two projectors, because
 * - counts are stored before the documents: a document that contains a change proves that its counts do;
 * - they are read after the documents that the changes were derived from;
 * - a change counts only if it is newer than the stored count.
 */
export class Counts {
  readonly #indexes: ReadonlyMap<string, CountedIndex>
  readonly #documents: () => Documents<Envelope>
  readonly #envelopes: Envelopes

  constructor(server: Server, spec: CollectionSpec) {
    this.#indexes = countedIndexes(spec)
    this.#documents = () => server.db.collection(countsName(spec))
    this.#envelopes = new Envelopes(this.#documents, server.lookup)
  }

  get isEmpty(): boolean {
    return this.#indexes.size === 0
  }

  /** Returns the number of documents that match a query without bounds; undefined if it is not counted. */
  async of(query: Query): Promise<number | undefined> {
    const index = countedBy(this.#indexes, query)
    if (!index) return undefined
    const facet = facetAsked(index, query)
    return countIn((await this.#envelopes.stored([facet])).get(facet)).n
  }

  /** Counts the documents after the step of `from`. The caller counts those from `from` to `before`, the step's end. */
  async after(query: Query, from: string): Promise<Passed | undefined> {
    const found = await this.#beside(AFTER, query, from)
    return found && passed(found.count, found.step)
  }

  /** Counts the documents before the step of a text. The caller counts those of the step. */
  before(query: Query, text: string): Promise<Beside | undefined> {
    return this.#beside(BEFORE, query, text)
  }

  async #beside({ between, has }: Side, query: Query, text: string): Promise<Beside | undefined> {
    const index = countedBy(this.#indexes, query)
    if (!index || index.steps.length === 0 || index.sort !== query.sort) return undefined
    const facet = facetAsked(index, query)
    const { stored, packed } = levelsOf(index)
    let count = 0
    let within = ''
    for (const length of stored) {
      const step = text.slice(0, length)
      const [first, end] = between(stepKey(facet, length, step), stepKey(facet, length, within))
      const found = this.#documents().find({ _id: { $gte: first, $lt: end } })
      for (const envelope of await ask(() => found.toArray())) count += countIn(envelope).n
      within = step
    }
    if (packed !== undefined) {
      const key = stepKey(facet, within.length, within)
      const rest = text.slice(within.length, packed)
      const { by = {} } = countIn((await this.#envelopes.stored([key])).get(key))
      for (const [each, n] of Object.entries(by)) if (has(each, rest)) count += n
      within = text.slice(0, packed)
    }
    return { count, step: within }
  }

  /** Stores the counts after changes of documents. Called before the documents are stored. */
  async add(changes: readonly Change[], refuseLate?: () => void): Promise<void> {
    const plans = new Map<string, Plan>()
    await slices.each(changes, (change) => {
      for (const index of this.#indexes.values()) planChange(plans, index, change)
    })
    if (plans.size === 0) return
    const stored = await this.#envelopes.stored([...plans.keys()])
    const envelopes: Envelope[] = []
    for (const [id, { cursor, steps }] of plans) {
      const before = stored.get(id)
      if (before && cursor <= before.cursor) continue
      const doc = JSON.stringify(counted(countIn(before), steps, before?.cursor))
      envelopes.push({ _id: id, last: { cursor, gone: false, f: {}, doc } })
    }
    await this.#envelopes.put(envelopes, refuseLate)
  }
}

/** The changes that writes make to stored documents. */
export const changesOf = (
  writes: readonly Write[],
  stored: ReadonlyMap<string, Stored>,
): readonly Change[] => {
  const last = new Map(stored)
  return writes.flatMap(({ id, doc, cursor }) => {
    const before = last.get(id)
    if (before && cursor <= before.cursor) return []
    last.set(id, { doc, cursor })
    return [{ before: before?.doc ?? null, after: doc, cursor }]
  })
}

/** The lengths of prefixes that have documents, and the length that is part of the document of the last one. */
const levelsOf = ({ steps }: CountedIndex): { stored: readonly number[]; packed: number | undefined } =>
  steps.length > 1
    ? { stored: steps.slice(0, -1), packed: steps.at(-1) }
    : { stored: steps, packed: undefined }

const planChange = (
  plans: Map<string, Plan>,
  index: CountedIndex,
  { before, after, cursor }: Change,
): void => {
  const [left, entered] = [before && keyOf(index, before), after && keyOf(index, after)]
  if (left && entered && left.facet === entered.facet && left.step === entered.step) return
  for (const [key, n] of [
    [left, -1],
    [entered, 1],
  ] as const)
    if (key) for (const [id, rest] of idsOf(index, key)) plan(plans, id, { cursor, n, rest })
}

const plan = (plans: Map<string, Plan>, id: string, step: Plan['steps'][number]): void => {
  const known = plans.get(id)
  if (!known) return void plans.set(id, { cursor: step.cursor, steps: [step] })
  known.steps.push(step)
  if (step.cursor > known.cursor) known.cursor = step.cursor
}

interface Key {
  readonly facet: string
  /** The longest counted prefix of the sort field. */
  readonly step: string
}

const keyOf = ({ name, fields, sort, steps }: CountedIndex, doc: Doc): Key => {
  const value = columnOf(fieldOf(doc, sort))
  return {
    facet: facetOf(
      name,
      fields.map((field) => columnOf(fieldOf(doc, field))),
    ),
    step: typeof value === 'string' ? value.slice(0, steps.at(-1) ?? 0) : '',
  }
}

/** The counts that contain a document, and the part of the last one. */
const idsOf = (
  index: CountedIndex,
  { facet, step }: Key,
): readonly (readonly [string, string | undefined])[] => {
  if (step === '') return [[facet, undefined]]
  const { stored, packed } = levelsOf(index)
  return [
    [facet, undefined],
    ...stored.map((length, at) => {
      const rest = packed !== undefined && at === stored.length - 1 ? step.slice(length) : undefined
      return [stepKey(facet, length, step.slice(0, length)), rest] as const
    }),
  ]
}

const NONE: Count = { n: 0 }
const countIn = (stored: Stored | Envelope | undefined): Count => {
  const doc = stored && ('doc' in stored ? stored.doc : docOf(stored))
  return (doc as Count | null | undefined) ?? NONE
}

const counted = (before: Count, steps: Plan['steps'], since: Cursor | undefined): Count => {
  let { n } = before
  const by: Record<string, number> = { ...before.by }
  for (const step of steps) {
    if (since !== undefined && step.cursor <= since) continue
    n += step.n
    if (step.rest === undefined) continue
    const left = (by[step.rest] ?? 0) + step.n
    if (left === 0) delete by[step.rest]
    else by[step.rest] = left
  }
  return { n, ...(steps.some(({ rest }) => rest !== undefined) && { by }) }
}
