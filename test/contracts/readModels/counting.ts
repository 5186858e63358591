import * as assert from 'uvu/assert'
import { newId } from '../../../src/ids.ts'
import type {
  Change,
  CollectionSpec,
  Doc,
  ReadModels,
  Stored,
  WritableCollection,
  Write,
} from '../../../src/ports/readModels.ts'
import { randomOf, SEED } from '../../support/randomOf.ts'
import type { Suite } from '../../support/suite.ts'
import { cursorOf, type OpenReadModels } from './collection.ts'

/** A change of a document by one event of a log. */
interface Fact {
  readonly id: string
  readonly doc: Doc | null
  readonly cursor: string
}

const specOf = (): CollectionSpec => ({
  name: `counted_${newId().replaceAll('-', '')}`,
  version: 1,
  indexes: [
    { equal: [], sort: 'at', counted: true },
    { equal: ['env'], sort: 'at', counted: true, steps: [2, 4, 6] },
    { equal: ['env', 'status'], sort: 'at', counted: true, steps: [2, 4, 6] },
  ],
})

/** A log of documents that begin, change their status and end. */
const someFacts = (random: (below: number) => number): Fact[] => {
  const docs = new Map<string, Doc>()
  return Array.from({ length: 160 }, (_, n) => {
    const id = `d${random(40)}`
    const known = docs.get(id)
    const begin = { id, env: `e${random(2)}`, at: `${10 + random(3)}${10 + random(3)}${10 + random(9)}` }
    const doc = known && random(5) === 0 ? null : { ...(known ?? begin), status: `s${random(3)}` }
    if (doc) docs.set(id, doc)
    else docs.delete(id)
    return { id, doc, cursor: cursorOf(n + 1) }
  })
}

/** Takes the next facts of a log into the collection, as a projector does. */
class Taker {
  readonly #facts: readonly Fact[]
  readonly #collection: WritableCollection
  taken = 0

  constructor(facts: readonly Fact[], collection: WritableCollection) {
    this.#facts = facts
    this.#collection = collection
  }

  get isDone(): boolean {
    return this.taken >= this.#facts.length
  }

  async take(count: number, end: 'complete' | 'before documents' | 'before checkpoint'): Promise<void> {
    const batch = this.#facts.slice(this.taken, this.taken + count)
    const last = new Map<string, Stored>(await this.#collection.stored(batch.map(({ id }) => id)))
    const changes: Change[] = []
    const writes = new Map<string, Write>()
    for (const { id, doc, cursor } of batch) {
      const before = last.get(id)
      if (before && cursor <= before.cursor) continue
      changes.push({ before: before?.doc ?? null, after: doc, cursor })
      last.set(id, { doc, cursor })
      writes.set(id, { id, doc, cursor })
    }
    const all = end === 'before documents' ? [] : [...writes.values()]
    const checkpoint = end === 'complete' ? (batch.at(-1)?.cursor ?? '') : ''
    await this.#collection.write(all, checkpoint, { changes })
    if (end === 'complete') this.taken += batch.length
  }
}

/** Compares each total with the documents. */
const checkTotals = async (readModels: ReadModels, spec: CollectionSpec): Promise<void> => {
  const reader = readModels.reader(spec)
  const docs = await Array.fromAsync(reader.scan())
  const matching = (equal: Doc, from = '', before = 'z') =>
    docs.filter(
      (doc) =>
        Object.entries(equal).every(([field, value]) => doc[field] === value) &&
        String(doc['at']) >= from &&
        String(doc['at']) < before,
    ).length
  for (const equal of [{}, { env: 'e0' }, { env: 'e1' }, { env: 'e0', status: 's1' }, { env: 'e2' }]) {
    const query = { equal, sort: 'at', limit: 0, offset: 0 }
    assert.is((await reader.find(query)).total, matching(equal), JSON.stringify(equal))
    if (!('env' in equal)) continue
    for (const from of ['10', '11', '1111', '111115', '12', '121219', '13']) {
      const about = `${JSON.stringify(equal)} ${from}`
      assert.is((await reader.find({ ...query, from })).total, matching(equal, from), about)
      assert.is((await reader.find({ ...query, before: from })).total, matching(equal, '', from), about)
    }
  }
}

/** The totals of counted indexes are exact, whatever happens to their writers. */
export const countingContract = (counting: Suite<OpenReadModels>): void => {
  const random = randomOf(SEED)
  const ends = ['complete', 'before documents', 'before checkpoint'] as const

  counting(`stays exact when a writer dies at any point (SVC_TEST_SEED=${SEED})`, async ({ readModels }) => {
    const spec = specOf()
    const facts = someFacts(random)
    const taker = new Taker(facts, await readModels.writer(spec))
    while (!taker.isDone) await taker.take(1 + random(12), ends[random(3)] ?? 'complete')
    await checkTotals(readModels, spec)
  })

  counting(
    `stays exact when several writers take the same facts (SVC_TEST_SEED=${SEED})`,
    async ({ readModels }) => {
      const spec = specOf()
      const facts = someFacts(random)
      const takers = [
        new Taker(facts, await readModels.writer(spec)),
        new Taker(facts, await readModels.writer(spec)),
        new Taker(facts, await readModels.writer(spec)),
      ]
      while (takers.some(({ isDone }) => !isDone)) {
        const working = takers.filter(() => random(3) > 0)
        await Promise.all(working.map((taker) => taker.take(1 + random(12), ends[random(3)] ?? 'complete')))
      }
      await checkTotals(readModels, spec)
      const late = new Taker(facts, await readModels.writer(spec))
      while (!late.isDone) await late.take(20, 'complete')
      await checkTotals(readModels, spec)
    },
  )

  counting('stores summaries beside the documents, and none that is older', async ({ readModels }) => {
    const spec = specOf()
    const writer = await readModels.writer(spec)
    const summaries = [{ id: 'stats', doc: { n: 2 }, cursor: cursorOf(2) }]
    await writer.write([{ id: 'a', doc: { env: 'e0', at: '101010' }, cursor: cursorOf(2) }], cursorOf(2), {
      summaries,
    })
    await writer.write([], cursorOf(2), { summaries: [{ id: 'stats', doc: { n: 1 }, cursor: cursorOf(1) }] })
    assert.equal(await writer.get('stats'), { n: 2 })
    assert.is((await writer.find({ equal: { env: 'e0' }, sort: 'at', limit: 0, offset: 0 })).total, 1)
  })
}
