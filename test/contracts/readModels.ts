import * as assert from 'uvu/assert'
import { START } from '../../src/events/event.ts'
import { newId } from '../../src/ids.ts'
import type { CollectionSpec, Doc, Query, ReadModels, Scalar, Write } from '../../src/ports/readModels.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

export interface OpenReadModels {
  readonly readModels: ReadModels
  close(): Promise<void>
}

const cursorOf = (position: number): string => String(position).padStart(16, '0')

/** A collection nobody else uses, and a cursor that only goes up. */
const aCollection = () => {
  const spec: CollectionSpec = {
    name: `runs_${newId().replaceAll('-', '')}`,
    version: 1,
    indexes: [
      { equal: [], sort: 'at', counted: true },
      { equal: ['env'], sort: 'at', counted: true },
      { equal: ['env', 'status'], sort: 'at', counted: true },
      { equal: ['env'], sort: 'path' },
      { equal: ['flag'], sort: 'size' },
    ],
  }
  let position = 0
  const next = () => cursorOf(++position)
  const put = (id: string, doc: Doc | null, cursor = next()): Write => ({ id, doc, cursor })
  return { spec, next, put }
}

const byTime: Query = { equal: {}, sort: 'at', limit: 20, offset: 0 }
const inEnv = (env: Scalar, more: Partial<Query> = {}): Query => ({ ...byTime, equal: { env }, ...more })

const idsIn = async (found: Promise<{ items: readonly Doc[] }>) => (await found).items.map(({ id }) => id)

/** The order of the documents does not matter where the port promises none. */
const sorted = (values: Iterable<unknown>) => [...values].sort()

/** What every adapter of `ports/readModels.ts` keeps. `open` gives read models that others may use too. */
export const readModelsContract = (name: string, open: () => Promise<OpenReadModels>): void => {
  const storing = suite<OpenReadModels>(`${name} read models: storing`)
  const finding = suite<OpenReadModels>(`${name} read models: finding`)
  const versions = suite<OpenReadModels>(`${name} read models: versions`)
  for (const each of [storing, finding, versions]) {
    each.before(async (context) => Object.assign(context, await open()))
    each.after(({ close }) => close())
  }

  storing('a new collection is empty and has come nowhere', async ({ readModels }) => {
    const { spec } = aCollection()
    const writer = await readModels.writer(spec)
    assert.is(await writer.checkpoint(), null)
    assert.is(await writer.get('a'), null)
    assert.equal(await writer.find(byTime), { items: [], total: 0 })
    assert.equal(await Array.fromAsync(writer.scan()), [])
  })

  storing('gives back what was written, and how far it came', async ({ readModels }) => {
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

  storing('another writer goes on where the first one stopped', async ({ readModels }) => {
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

  storing('tells what was last written, removals too, and as of when', async ({ readModels }) => {
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

  finding('sorts both ways, ties by id', async ({ readModels }) => {
    const { spec, put, next } = aCollection()
    const writer = await readModels.writer(spec)
    const docs = ['c:t2', 'a:t2', 'd:t1', 'b:t2', 'e:t3'].map((text) => text.split(':') as [string, string])
    await writer.write(
      docs.map(([id, at]) => put(id, { id, env: 'x', at })),
      next(),
    )
    assert.equal(await idsIn(writer.find(inEnv('x'))), ['d', 'a', 'b', 'c', 'e'])
    assert.equal(await idsIn(writer.find(inEnv('x', { descending: true }))), ['e', 'c', 'b', 'a', 'd'])
  })

  finding(
    'sorts null before numbers before texts before booleans, texts by code point',
    async ({ readModels }) => {
      const { spec, put, next } = aCollection()
      const writer = await readModels.writer(spec)
      const order: Scalar[] = [
        null,
        -2,
        1,
        1.5,
        10,
        '',
        '10',
        '9',
        'Z',
        'a',
        'z',
        'é',
        '\uffee',
        '🦊',
        false,
        true,
      ]
      const shuffled = order
        .map((at, id) => ({ id, env: 'x', at }))
        .sort((a, b) => ((a.id * 7) % 16) - ((b.id * 7) % 16))
      await writer.write(
        shuffled.map((doc) => put(`d${doc.id}`, doc)),
        next(),
      )
      const { items } = await writer.find(inEnv('x'))
      assert.equal(
        items.map(({ at }) => at),
        order,
      )
    },
  )

  finding('gives pages that join, with the total on each', async ({ readModels }) => {
    const { spec, put, next } = aCollection()
    const writer = await readModels.writer(spec)
    const docs = Array.from({ length: 25 }, (_, i) => ({ id: `d${i}`, env: 'x', at: cursorOf(i % 4) }))
    await writer.write(
      docs.map((doc) => put(doc.id, doc)),
      next(),
    )
    const seen: unknown[] = []
    for (let offset = 0; offset < 30; offset += 10) {
      const page = await writer.find(inEnv('x', { limit: 10, offset, descending: true }))
      assert.is(page.total, 25)
      seen.push(...page.items.map(({ id }) => id))
    }
    assert.is(new Set(seen).size, 25)
    assert.equal(await writer.find(inEnv('x', { limit: 10, offset: 100 })), { items: [], total: 25 })
  })

  finding('matches each equal field by value and type', async ({ readModels }) => {
    const { spec, put, next } = aCollection()
    const writer = await readModels.writer(spec)
    const values: Scalar[] = [true, false, 1, 0, '1', 'true', '', null]
    await writer.write(
      values.map((flag, id) => put(`d${id}`, { id, flag, env: flag, size: id, at: id })),
      next(),
    )
    for (const [id, flag] of values.entries()) {
      assert.equal(await writer.find({ ...byTime, equal: { flag }, sort: 'size' }), {
        items: [{ id, flag, env: flag, size: id, at: id }],
        total: 1,
      })
      assert.is((await writer.find(inEnv(flag, { limit: 1, offset: 1 }))).total, 1)
    }
  })

  finding('takes a missing field as null', async ({ readModels }) => {
    const { spec, put, next } = aCollection()
    const writer = await readModels.writer(spec)
    await writer.write(
      [put('a', { id: 'a', at: 2 }), put('b', { id: 'b', env: null }), put('c', { id: 'c', env: 'x' })],
      next(),
    )
    assert.equal(await idsIn(writer.find(inEnv(null))), ['b', 'a'])
    assert.is((await writer.find(inEnv(null, { limit: 1 }))).total, 2)
  })

  finding(
    'bounds the sort field: from inclusive, before exclusive, own type only',
    async ({ readModels }) => {
      const { spec, put, next } = aCollection()
      const writer = await readModels.writer(spec)
      const values: Scalar[] = [null, 1, 2, 3, 'a', 'b', 'c', true]
      await writer.write(
        values.map((at, id) => put(`d${id}`, { id: at, env: 'x', at })),
        next(),
      )
      const found = async (more: Partial<Query>) => {
        const page = await writer.find(inEnv('x', { ...more, limit: 1 }))
        const all = await writer.find(inEnv('x', more))
        assert.is(page.total, all.items.length)
        return all.items.map(({ id }) => id)
      }
      assert.equal(await found({ from: 2 }), [2, 3])
      assert.equal(await found({ before: 2 }), [1])
      assert.equal(await found({ from: 'b' }), ['b', 'c'])
      assert.equal(await found({ before: 'b' }), ['a'])
      assert.equal(await found({ from: 'a', before: 'c', descending: true }), ['b', 'a'])
      assert.equal(await found({ from: 'c', before: 'a' }), [])
    },
  )

  finding('takes a prefix as text, not as a pattern', async ({ readModels }) => {
    const { spec, put, next } = aCollection()
    const writer = await readModels.writer(spec)
    const paths = [
      'a',
      'a%',
      'a%b',
      'a.b',
      'a/',
      'a/b',
      'a/\u{10ffff}',
      'a/\u{10ffff}c',
      'a0',
      'A/b',
      'é/1',
      'ê',
      '\ud7ffx',
      '\ue000',
    ]
    await writer.write(
      paths.map((path, i) => put(`d${i}`, { id: path, env: 'x', path })),
      next(),
    )
    const found = (prefix: string, more: Partial<Query> = {}) =>
      idsIn(writer.find(inEnv('x', { sort: 'path', prefix, ...more })))
    assert.equal(await found('a/'), ['a/', 'a/b', 'a/\u{10ffff}', 'a/\u{10ffff}c'])
    assert.equal(await found('a/\u{10ffff}'), ['a/\u{10ffff}', 'a/\u{10ffff}c'])
    assert.equal(await found('a%'), ['a%', 'a%b'])
    assert.equal(await found('a.'), ['a.b'])
    assert.equal(await found('é'), ['é/1'])
    assert.equal(await found('\ud7ff'), ['\ud7ffx'])
    assert.equal(await found('nothing'), [])
    assert.is((await found('')).length, paths.length)
    assert.equal(await found('a/', { from: 'a/b', limit: 1 }), ['a/b'])
    assert.is((await writer.find(inEnv('x', { sort: 'path', prefix: 'a/', limit: 1 }))).total, 4)
  })

  finding('finds by a sparse index what has the sort field, when that is bounded', async ({ readModels }) => {
    const { spec, put, next } = aCollection()
    const sparse = { ...spec, indexes: [...spec.indexes, { equal: ['env'], sort: 'due', sparse: true }] }
    const writer = await readModels.writer(sparse)
    const docs = [null, 't3', 't1', undefined, 't2'].map((due, i) => ({
      id: `d${i}`,
      env: 'x',
      ...(due === undefined ? {} : { due }),
    }))
    await writer.write(
      docs.map((doc) => put(doc.id, doc)),
      next(),
    )
    const due = (more: Partial<Query>) => writer.find(inEnv('x', { sort: 'due', ...more }))
    assert.equal(await idsIn(due({ before: 't3' })), ['d2', 'd4'])
    assert.equal(await idsIn(due({ from: '' })), ['d2', 'd4', 'd1'])
    assert.is((await due({ prefix: 't', limit: 1 })).total, 3)
    await writer.write(
      [put('d2', { id: 'd2', env: 'x', due: null }), put('d0', { id: 'd0', env: 'x', due: 't0' })],
      next(),
    )
    assert.equal(await idsIn(due({ from: '' })), ['d0', 'd4', 'd1'])
    const refused = await due({}).then(
      () => false,
      () => true,
    )
    assert.ok(refused)
  })

  finding('keeps totals right while documents move between facets', async ({ readModels }) => {
    const { spec, put, next } = aCollection()
    const writer = await readModels.writer(spec)
    const expected = new Map<string, Doc>()
    for (let step = 0; step < 60; step++) {
      const id = `d${(step * 7) % 12}`
      const doc =
        step % 5 === 4 ? null : { id, env: `e${step % 3}`, status: `s${step % 4}`, at: cursorOf(step) }
      if (doc) expected.set(id, doc)
      else expected.delete(id)
      await writer.write([put(id, doc)], next())
    }
    for (const env of ['e0', 'e1', 'e2']) {
      const inThat = [...expected.values()].filter((doc) => doc['env'] === env)
      assert.is((await writer.find(inEnv(env, { limit: 1, offset: 50 }))).total, inThat.length)
      for (const status of ['s0', 's1', 's2', 's3']) {
        const { total } = await writer.find({ ...byTime, equal: { env, status }, limit: 1, offset: 50 })
        assert.is(total, inThat.filter((doc) => doc['status'] === status).length)
      }
    }
    assert.is((await writer.find({ ...byTime, offset: 50 })).total, expected.size)
  })

  finding(
    'reaches far pages, also from a value on, whatever came and went before',
    async ({ readModels }) => {
      const { spec, put, next } = aCollection()
      const indexes = [{ equal: ['env'], sort: 'at', counted: true, steps: [2, 4] }]
      const writer = await readModels.writer({ ...spec, indexes })
      const timeOf = (n: number) => `${20 + (n % 13)}:${String((n * 7) % 60).padStart(2, '0')}`
      const docs = Array.from({ length: 500 }, (_, n) => ({
        id: `d${String(n).padStart(3, '0')}`,
        env: 'x',
        at: n < 4 ? null : n < 8 ? 'zz' : timeOf(n),
      }))
      await writer.write(
        docs.map((doc) => put(doc.id, doc)),
        next(),
      )
      const moved = docs.filter((_, n) => n % 5 === 1).map((doc) => ({ ...doc, at: '21:00' }))
      const gone = new Set(docs.filter((_, n) => n % 5 === 2).map(({ id }) => id))
      await writer.write(
        [...moved.map((doc) => put(doc.id, doc)), ...[...gone].map((id) => put(id, null))],
        next(),
      )
      const left = [...new Map([...docs, ...moved].map((doc) => [doc.id, doc])).values()]
        .filter(({ id }) => !gone.has(id))
        .sort((a, b) => (`${a.at ?? ''} ${a.id}` < `${b.at ?? ''} ${b.id}` ? 1 : -1))
      for (const from of [undefined, '', '21', '21:00', '27:3', 'zzz']) {
        const matching = left.filter(({ at }) => from === undefined || (at !== null && at >= from))
        const total = matching.length
        for (const offset of [0, 201, total - 1, total].filter((at) => at >= 0)) {
          const page = inEnv('x', { ...(from !== undefined && { from }), limit: 3, offset })
          const down = await writer.find({ ...page, descending: true })
          assert.equal(
            down,
            { items: matching.slice(offset, offset + 3), total },
            `from ${from} at ${offset}`,
          )
        }
        const up = await writer.find(
          inEnv('x', { ...(from !== undefined && { from }), limit: 3, offset: 201 }),
        )
        assert.equal(up, { items: matching.toReversed().slice(201, 204), total })
      }
    },
  )

  finding('refuses a query that no declared index serves', async ({ readModels }) => {
    const { spec } = aCollection()
    const reader = readModels.reader(spec)
    for (const query of [inEnv('x', { sort: 'size' }), { ...byTime, equal: { status: 's' } }]) {
      const refused = await reader.find(query).then(
        () => false,
        () => true,
      )
      assert.ok(refused)
    }
  })

  versions('a reader sees the given version while none is live', async ({ readModels }) => {
    const { spec, put, next } = aCollection()
    const reader = readModels.reader(spec)
    assert.is(await reader.get('a'), null)
    assert.equal(await reader.find(byTime), { items: [], total: 0 })
    const writer = await readModels.writer(spec)
    await writer.write([put('a', { v: 1 })], next())
    assert.equal(await reader.get('a'), { v: 1 })
  })

  versions(
    'a new version is filled beside the live one, then seen by every reader',
    async ({ readModels }) => {
      const { spec, put, next } = aCollection()
      const spec2 = { ...spec, version: 2 }
      const readers = [readModels.reader(spec), readModels.reader(spec2)]
      const first = await readModels.writer(spec)
      await first.write([put('a', { id: 'a', env: 'x', v: 1 })], cursorOf(3))
      await readModels.goLive(spec)
      const second = await readModels.writer(spec2)
      assert.is(await second.checkpoint(), null)
      await second.write(
        [put('a', { id: 'a', env: 'x', v: 2 }), put('b', { id: 'b', env: 'x', v: 2 })],
        next(),
      )
      for (const reader of readers) {
        assert.equal(await reader.get('a'), { id: 'a', env: 'x', v: 1 })
        assert.is((await reader.find(inEnv('x'))).total, 1)
      }
      await readModels.goLive(spec2)
      for (const reader of readers) {
        assert.equal(await reader.get('a'), { id: 'a', env: 'x', v: 2 })
        assert.equal(await idsIn(reader.find(inEnv('x'))), ['a', 'b'])
        assert.equal(sorted((await reader.getMany(['a', 'b'])).keys()), ['a', 'b'])
      }
    },
  )

  versions('a reader tells how far the version it sees has come', async ({ readModels }) => {
    const { spec } = aCollection()
    const spec2 = { ...spec, version: 2 }
    const reader = readModels.reader(spec2)
    assert.is(await reader.checkpoint(), null)
    await (await readModels.writer(spec)).write([], cursorOf(3))
    assert.is(await readModels.reader(spec).checkpoint(), cursorOf(3), 'while none is live, the given one')
    assert.is(await reader.checkpoint(), null)
    await readModels.goLive(spec)
    assert.is(await reader.checkpoint(), cursorOf(3))
    await (await readModels.writer(spec2)).write([], cursorOf(2))
    assert.is(await reader.checkpoint(), cursorOf(3))
    await readModels.goLive(spec2)
    assert.is(await reader.checkpoint(), cursorOf(2))
  })

  versions('a version that went live untouched is empty and has come nowhere', async ({ readModels }) => {
    const { spec } = aCollection()
    await readModels.goLive(spec)
    const reader = readModels.reader(spec)
    assert.is(await reader.checkpoint(), null)
    assert.equal(await reader.find(byTime), { items: [], total: 0 })
  })

  versions('going live again, or back, changes nothing', async ({ readModels }) => {
    const { spec, put, next } = aCollection()
    const spec2 = { ...spec, version: 2 }
    await readModels.goLive(spec)
    const writer = await readModels.writer(spec2)
    await writer.write([put('a', { v: 2 })], next())
    await readModels.goLive(spec2)
    await readModels.goLive(spec2)
    await readModels.goLive(spec)
    assert.equal(await readModels.reader(spec).get('a'), { v: 2 })
  })

  versions(
    'a query of newer code is answered by the live version, indexed or not',
    async ({ readModels }) => {
      const { spec, put, next } = aCollection()
      const writer = await readModels.writer(spec)
      const docs = [5, 3, 4, 1, 2].map((n) => ({
        id: `d${n}`,
        kind: n % 2 ? 'odd' : 'even',
        at: cursorOf(n),
        path: `p/${n}`,
      }))
      await writer.write(
        [...docs.map((doc) => put(doc.id, doc)), put('gone', { kind: 'odd' }), put('gone', null)],
        next(),
      )
      await readModels.goLive(spec)
      const newer = {
        ...spec,
        version: 2,
        indexes: [...spec.indexes, { equal: ['kind'], sort: 'path', counted: true }],
      }
      const query = { equal: { kind: 'odd' }, sort: 'path', limit: 2, offset: 1, descending: true }
      const reader = readModels.reader(newer)
      const page = await reader.find(query)
      assert.equal(
        page.items.map(({ id }) => id),
        ['d3', 'd1'],
      )
      assert.is(page.total, 3)
      assert.is((await reader.find({ ...query, prefix: 'p/', before: 'p/5' })).total, 2)
    },
  )

  versions('readers never fail while versions go live', async ({ readModels }) => {
    const { spec, put, next } = aCollection()
    const reader = readModels.reader(spec)
    const docs = Array.from({ length: 600 }, (_, i) => ({ id: `d${i}`, env: 'x', at: cursorOf(i) }))
    let done = false
    let reads = 0
    const reading = (async () => {
      while (!done) {
        await Promise.all([reader.get('d1'), reader.getMany(['d2', 'd3']), reader.find(inEnv('x'))])
        reads++
        await new Promise((resolve) => setImmediate(resolve))
      }
    })()
    try {
      for (let version = 1; version <= 3; version++) {
        const writer = await readModels.writer({ ...spec, version })
        await writer.write(
          docs.map((doc) => put(doc.id, { ...doc, version })),
          next(),
        )
        await readModels.goLive({ ...spec, version })
        const before = reads
        await until(() => reads > before + 1)
        assert.is((await reader.get('d1'))?.['version'], version)
        assert.is((await reader.find(inEnv('x'))).total, 600)
      }
    } finally {
      done = true
      await reading
    }
  })

  storing.run()
  finding.run()
  versions.run()
}
