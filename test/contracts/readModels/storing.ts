import * as assert from 'uvu/assert'
import { START } from '../../../src/events/event.ts'
import type { Doc, WritableCollection } from '../../../src/ports/readModels.ts'
import type { Suite } from '../../support/suite.ts'
import { aCollection, byTime, cursorOf, idsIn, inEnv, sorted, type OpenReadModels } from './collection.ts'

/** Resolves with the number of removals that were forgotten. */
const forgetAll = async (writer: WritableCollection, upTo: string): Promise<number> => {
  let sum = 0
  for (let n = await writer.forgetRemovals(upTo); n > 0; n = await writer.forgetRemovals(upTo)) sum += n
  return sum
}

/** The rules of writing to a collection. */
export const storingContract = (storing: Suite<OpenReadModels>): void => {
  storing('a new collection is empty and has come nowhere', async ({ readModels }) => {
    const { spec } = aCollection()
    const writer = await readModels.writer(spec)
    assert.is(await writer.checkpoint(), null)
    assert.is(await writer.get('a'), null)
    assert.equal(await writer.find(byTime), { items: [], total: 0 })
    assert.equal(await Array.fromAsync(writer.scan()), [])
  })

  storing('returns the written documents and their position', async ({ readModels }) => {
    const { spec, put } = aCollection()
    const writer = await readModels.writer(spec)
    const doc = {
      id: 'a',
      at: 't1',
      nested: { list: [1, 'two', null, { three: true }] },
      none: null,
      no: false,
      size: 1.5,
    }
    await writer.write([put('a', doc)], cursorOf(7))
    assert.equal(await writer.get('a'), doc)
    assert.equal(await readModels.reader(spec).get('a'), doc)
    assert.is(await writer.checkpoint(), cursorOf(7))
  })

  storing('moves its checkpoint without documents, and never back', async ({ readModels }) => {
    const { spec } = aCollection()
    const writer = await readModels.writer(spec)
    await writer.write([], cursorOf(5))
    assert.is(await writer.checkpoint(), cursorOf(5))
    await writer.write([], cursorOf(3))
    assert.is(await writer.checkpoint(), cursorOf(5))
  })

  storing('another writer continues where the first one stopped', async ({ readModels }) => {
    const { spec, put } = aCollection()
    await (await readModels.writer(spec)).write([put('a', { id: 'a' })], cursorOf(1))
    const writer = await readModels.writer(spec)
    assert.is(await writer.checkpoint(), cursorOf(1))
    assert.equal(await writer.get('a'), { id: 'a' })
  })

  storing('gets many, without those that are missing', async ({ readModels }) => {
    const { spec, put, next } = aCollection()
    const writer = await readModels.writer(spec)
    await writer.write([put('a', { n: 1 }), put('b', { n: 2 }), put('c', { n: 3 }), put('c', null)], next())
    const many = await writer.getMany(['b', 'x', 'a', 'c', 'b'])
    assert.equal(sorted(many.keys()), ['a', 'b'])
    assert.equal(many.get('b'), { n: 2 })
    assert.is((await writer.getMany([])).size, 0)
  })

  storing('leaves out a write that is before the stored one', async ({ readModels }) => {
    const { spec, put } = aCollection()
    const writer = await readModels.writer(spec)
    await writer.write([put('a', { env: 'x', v: 5 }, cursorOf(5))], cursorOf(5))
    await writer.write([put('a', { env: 'y', v: 4 }, cursorOf(4))], cursorOf(5))
    assert.equal(await writer.get('a'), { env: 'x', v: 5 })
    assert.is((await writer.find(inEnv('y', { limit: 1, offset: 1 }))).total, 0)
    await writer.write([put('a', { env: 'y', v: 6 }, cursorOf(6))], cursorOf(6))
    assert.equal(await writer.get('a'), { env: 'y', v: 6 })
  })

  storing('keeps the last of several writes to a document in a batch', async ({ readModels }) => {
    const { spec, put, next } = aCollection()
    const writer = await readModels.writer(spec)
    const batch = [
      put('a', { env: 'x', v: 1 }),
      put('a', { env: 'y', v: 2 }),
      put('b', { env: 'x' }),
      put('b', null),
    ]
    await writer.write(batch, next())
    assert.equal(await writer.get('a'), { env: 'y', v: 2 })
    assert.is(await writer.get('b'), null)
    assert.is((await writer.find(inEnv('x'))).total, 0)
    assert.is((await writer.find(inEnv('y', { offset: 1 }))).total, 1)
  })

  storing(
    'a batch applied twice, or cut in the middle, gives the same documents and totals',
    async ({ readModels }) => {
      const { spec, put, next } = aCollection()
      const writer = await readModels.writer(spec)
      const batch = [
        ...Array.from({ length: 40 }, (_, i) =>
          put(`d${i}`, { id: `d${i}`, env: i % 2 ? 'x' : 'y', at: cursorOf(i) }),
        ),
        ...Array.from({ length: 10 }, (_, i) =>
          put(`d${i}`, { id: `d${i}`, env: 'x', at: cursorOf(i), moved: true }),
        ),
        ...Array.from({ length: 5 }, (_, i) => put(`d${i}`, null)),
      ]
      const checkpoint = next()
      const state = async () => ({
        x: await writer.find(inEnv('x', { limit: 3 })),
        y: await writer.find(inEnv('y', { limit: 3 })),
        docs: sorted((await Array.fromAsync(writer.scan())).map((doc) => JSON.stringify(doc))),
      })
      await writer.write(batch.slice(0, 45), cursorOf(0))
      await writer.write(batch, checkpoint)
      const once = await state()
      assert.is(once.docs.length, 35)
      assert.is(once.x.total, 20)
      assert.is(once.y.total, 15)
      await writer.write(batch, checkpoint)
      await writer.write(batch.slice(0, 20), checkpoint)
      assert.equal(await state(), once)
    },
  )

  storing('a removed document is gone, and an older write does not bring it back', async ({ readModels }) => {
    const { spec, put } = aCollection()
    const writer = await readModels.writer(spec)
    await writer.write([put('a', { env: 'x' }, cursorOf(1)), put('a', null, cursorOf(3))], cursorOf(3))
    await writer.write([put('a', { env: 'x' }, cursorOf(2)), put('never', null, cursorOf(3))], cursorOf(3))
    await writer.write([put('never', { env: 'x' }, cursorOf(2))], cursorOf(3))
    assert.is(await writer.get('a'), null)
    assert.is(await writer.get('never'), null)
    assert.equal(await writer.find(inEnv('x')), { items: [], total: 0 })
    assert.equal(await Array.fromAsync(writer.scan()), [])
    await writer.write([put('a', { env: 'x', again: true }, cursorOf(4))], cursorOf(4))
    assert.equal(await writer.get('a'), { env: 'x', again: true })
    assert.is((await writer.find(inEnv('x', { offset: 1 }))).total, 1)
  })

  storing('forgets removals up to a cursor, and no documents', async ({ readModels }) => {
    const { spec, put } = aCollection()
    const writer = await readModels.writer(spec)
    const doc = (id: string) => ({ id, env: 'x', at: id })
    const begun = ['a', 'b', 'c', 'd'].map((id) => put(id, doc(id), cursorOf(1)))
    await writer.write([...begun, put('never', null, cursorOf(2))], cursorOf(2))
    await writer.write([put('a', null, cursorOf(3)), put('b', null, cursorOf(4))], cursorOf(4))
    await writer.write([put('a', doc('a'), cursorOf(5)), put('c', null, cursorOf(6))], cursorOf(6))
    assert.is(await forgetAll(writer, cursorOf(5)), 2)
    assert.equal(sorted((await Array.fromAsync(writer.entries())).map(([id]) => id)), ['a', 'c', 'd'])
    assert.equal((await writer.stored(['c'])).get('c'), { doc: null, cursor: cursorOf(6) })
    assert.equal(await idsIn(writer.find(inEnv('x'))), ['a', 'd'])
    assert.is((await writer.find(inEnv('x', { limit: 1 }))).total, 2)
    assert.is(await writer.count(), 2)
    assert.is(await forgetAll(writer, cursorOf(6)), 1)
    assert.is(await writer.checkpoint(), cursorOf(6))
  })

  storing('stores a document again whose removal was forgotten', async ({ readModels }) => {
    const { spec, put, next } = aCollection()
    const writer = await readModels.writer(spec)
    const doc = (v: number) => ({ id: 'a', env: 'x', at: 't', v })
    for (const v of [1, 2]) {
      await writer.write([put('a', doc(v))], next())
      assert.equal(await writer.get('a'), doc(v))
      assert.is((await writer.find(inEnv('x', { limit: 1 }))).total, 1)
      await writer.write([put('a', null)], next())
      await forgetAll(writer, next())
      assert.is(await writer.get('a'), null)
      assert.is((await writer.find(inEnv('x', { limit: 1 }))).total, 0)
    }
  })

  storing('forgets more removals than one command takes, also without an index', async ({ readModels }) => {
    for (const indexes of [aCollection().spec.indexes, []]) {
      const { spec, put, next } = aCollection()
      const writer = await readModels.writer({ ...spec, indexes })
      await writer.write(
        Array.from({ length: 1100 }, (_, i) => put(`d${i}`, null)),
        next(),
      )
      assert.is(await forgetAll(writer, next()), 1100)
      assert.equal(await Array.fromAsync(writer.entries()), [])
    }
  })

  storing('returns the last write of each id with its cursor, removals too', async ({ readModels }) => {
    const { spec, put } = aCollection()
    const writer = await readModels.writer(spec)
    await writer.write(
      [
        put('a', { v: 2 }, cursorOf(2)),
        put('gone', { v: 1 }, cursorOf(1)),
        put('gone', null, cursorOf(3)),
        put('never', null, cursorOf(4)),
      ],
      cursorOf(4),
    )
    await writer.write([put('a', { v: 1 }, cursorOf(1)), put('gone', { v: 2 }, cursorOf(2))], cursorOf(4))
    const stored = await writer.stored(['a', 'gone', 'never', 'missing', 'a'])
    assert.equal(sorted(stored.keys()), ['a', 'gone', 'never'])
    assert.equal(stored.get('a'), { doc: { v: 2 }, cursor: cursorOf(2) })
    assert.equal(stored.get('gone'), { doc: null, cursor: cursorOf(3) })
    assert.equal(stored.get('never'), { doc: null, cursor: cursorOf(4) })
    assert.is((await writer.stored([])).size, 0)
    await writer.write([put('gone', { v: 5 }, cursorOf(5))], cursorOf(5))
    assert.equal((await writer.stored(['gone'])).get('gone'), { doc: { v: 5 }, cursor: cursorOf(5) })
  })

  storing(
    'a collection without indexes keeps documents by id, and needs no checkpoint',
    async ({ readModels }) => {
      const { spec, put } = aCollection()
      const plain = { ...spec, indexes: [] }
      const writer = await readModels.writer(plain)
      await writer.write([put('a', { v: 1 }, cursorOf(1)), put('b', { v: 1 }, cursorOf(1))], START)
      await writer.write([put('a', { v: 2 }, cursorOf(2)), put('b', null, cursorOf(2))], START)
      assert.equal(await readModels.reader(plain).get('a'), { v: 2 })
      assert.equal(await Array.fromAsync(writer.scan()), [{ v: 2 }])
    },
  )

  storing('takes any id, text and field name', async ({ readModels }) => {
    const { spec, put, next } = aCollection()
    const writer = await readModels.writer(spec)
    const odd = [
      '__proto__',
      'constructor',
      'a.b',
      '$set',
      'o\'neil "x"',
      'Zoë 🦊 水',
      ' ',
      'a\nb',
      '%_*',
      'x'.repeat(500),
    ]
    const docOf = (id: string): Doc => ({
      id,
      env: id,
      at: id,
      text: `${id}\u0000\u2028`,
      fields: JSON.parse('{"__proto__":1,"a b":2}'),
    })
    await writer.write(
      odd.map((id) => put(id, docOf(id))),
      next(),
    )
    for (const id of odd) {
      assert.is(JSON.stringify(await writer.get(id)), JSON.stringify(docOf(id)))
      assert.equal(await idsIn(writer.find(inEnv(id))), [id])
    }
    assert.equal(sorted((await writer.getMany(odd)).keys()), sorted(odd))
  })

  storing('takes a document of a megabyte', async ({ readModels }) => {
    const { spec, put, next } = aCollection()
    const writer = await readModels.writer(spec)
    const doc = { env: 'big', at: 't', text: 'ü'.repeat(500_000) }
    await writer.write([put('big', doc)], next())
    assert.is((await writer.get('big'))?.['text'], doc.text)
    await writer.write([put('big', { ...doc, text: 'small' })], next())
    assert.is((await writer.get('big'))?.['text'], 'small')
  })

  storing('takes four thousand documents in a batch', async ({ readModels }) => {
    const { spec, put, next } = aCollection()
    const writer = await readModels.writer(spec)
    const batch = Array.from({ length: 4000 }, (_, i) => put(`d${i}`, { id: i, env: 'x', at: cursorOf(i) }))
    await writer.write(batch, next())
    const page = await writer.find(inEnv('x', { descending: true, limit: 3, offset: 1500 }))
    assert.equal(page, {
      items: [2499, 2498, 2497].map((i) => ({ id: i, env: 'x', at: cursorOf(i) })),
      total: 4000,
    })
    let scanned = 0
    for await (const _ of writer.scan()) scanned++
    assert.is(scanned, 4000)
  })
}
