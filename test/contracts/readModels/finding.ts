import * as assert from 'uvu/assert'
import type { Doc, Query, Scalar } from '../../../src/ports/readModels.ts'
import type { Suite } from '../../support/suite.ts'
import { aCollection, byTime, cursorOf, idsIn, inEnv, type OpenReadModels } from './collection.ts'

/** The rules of queries. */
export const findingContract = (finding: Suite<OpenReadModels>): void => {
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

  finding(
    'finds documents with the sort field by a sparse index, when the field is bounded',
    async ({ readModels }) => {
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
    },
  )

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
      for (const from of [undefined, '', '21', '21:00', '27:3', 'zzz'])
        for (const before of ['', '2', '21', '21:00', '21:000', '25:3', '27:31', 'zz', 'zzz']) {
          const matching = left.filter(
            ({ at }) => at !== null && at < before && (from === undefined || at >= from),
          )
          const range = { ...(from !== undefined && { from }), before }
          for (const offset of [0, 201])
            assert.equal(
              await writer.find(inEnv('x', { ...range, limit: 3, offset, descending: true })),
              { items: matching.slice(offset, offset + 3), total: matching.length },
              `from ${from} before ${before} at ${offset}`,
            )
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
}
