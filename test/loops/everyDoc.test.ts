import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import * as assert from 'uvu/assert'
import { openReadModels } from '../../src/adapters/embedded/readModels/index.ts'
import { START } from '../../src/events/event.ts'
import { everyDoc } from '../../src/loops/everyDoc.ts'
import type { CollectionSpec, Query, WritableCollection } from '../../src/ports/readModels.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

type Due = { readonly id: string; readonly at: string | null }
const dues: CollectionSpec = {
  name: 'dues',
  version: 1,
  indexes: [{ equal: [], sort: 'at', sparse: true }],
}

interface Context {
  readonly readModels: ReturnType<typeof openReadModels>
  readonly collection: WritableCollection<Due>
  /** Stores documents as they are now. */
  readonly put: (...docs: readonly Due[]) => Promise<void>
}

const pages = suite<Context>('every page of a list')
pages.before.each(async (context) => {
  const readModels = openReadModels({ dir: tempDir() })
  const collection = await readModels.writer<Due>(dues)
  let count = 0
  const put = async (...docs: readonly Due[]) => {
    const cursor = String(++count).padStart(8, '0')
    await collection.write(
      docs.map((doc) => ({ id: doc.id, doc, cursor })),
      START,
    )
  }
  Object.assign(context, { readModels, collection, put })
})
pages.after.each(({ readModels }) => readModels.close())

const placeOf = (n: number) => String(n).padStart(6, '0')
const many = (count: number, at: (n: number) => string): Due[] =>
  Array.from({ length: count }, (_, n) => ({ id: `d${placeOf(n)}`, at: at(n) }))
const all = ({ collection }: Context) => everyDoc(collection, { id: 'id', equal: {}, sort: 'at', from: '' })

pages('is read in order, whatever its length', async (context) => {
  for (const length of [0, 1, 99, 100, 101, 350]) {
    await context.put(...many(length, placeOf))
    const found = (await Array.fromAsync(all(context))).map(({ at }) => at)
    assert.equal(
      found,
      Array.from({ length }, (_, n) => placeOf(n)),
    )
  }
})

pages('skips nothing when documents that were read leave the list', async (context) => {
  await context.put(...many(350, placeOf))
  const found: string[] = []
  for await (const doc of all(context)) {
    found.push(doc.id)
    await context.put({ ...doc, at: null })
  }
  assert.is(found.length, 350)
})

pages('skips and repeats nothing when more documents than a page share a value', async (context) => {
  await context.put(...many(350, () => 'same'), { id: 'last', at: 'z' })
  const found = await Array.fromAsync(all(context))
  assert.is(new Set(found.map(({ id }) => id)).size, 351)
  assert.is(found.length, 351)
})

pages('skips nothing when documents of a shared value leave the list', async (context) => {
  await context.put(...many(350, (n) => placeOf(Math.floor(n / 60))))
  const found: string[] = []
  for await (const doc of all(context)) {
    found.push(doc.id)
    await context.put({ ...doc, at: null })
  }
  assert.is(new Set(found).size, 350)
})

pages('does not repeat a document that moves to a later place', async (context) => {
  await context.put(...many(250, placeOf))
  const found: string[] = []
  for await (const doc of all(context)) {
    if (found.length < 50) await context.put({ ...doc, at: `z${doc.at}` })
    found.push(doc.id)
  }
  assert.is(found.length, 250)
  assert.is(new Set(found).size, 250)
})
pages('keeps a few of the documents in memory, whatever the length of the list', async () => {
  const count = 400_000
  const page = ({ from, limit }: Query): Due[] => {
    const first = typeof from === 'string' ? Number(from) : 0
    const length = Math.min(limit, count - first)
    return Array.from({ length }, (_, n) => ({ id: `document ${first + n}`, at: placeOf(first + n) }))
  }
  const find = (query: Query) => Promise.resolve({ items: page(query), total: 0 })
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const used = () => {
    collect()
    return process.memoryUsage().heapUsed
  }
  const before = used()
  let [found, grown] = [0, 0]
  for await (const _ of everyDoc<Due>({ find }, { id: 'id', equal: {}, sort: 'at' }))
    if (++found === count) grown = used() - before
  assert.is(found, count)
  assert.ok(grown < 8 << 20, `${grown} bytes`)
})
pages.run()
