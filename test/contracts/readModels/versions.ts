import * as assert from 'uvu/assert'
import { isAppError, messageOf } from '../../../src/errors.ts'
import type { CollectionSpec, Doc, Query, Write } from '../../../src/ports/readModels.ts'
import type { Suite } from '../../support/suite.ts'
import { until } from '../../support/until.ts'
import { aCollection, byTime, cursorOf, idsIn, inEnv, type OpenReadModels } from './collection.ts'

/** The rules for readers while versions are created and dropped. */
export const versionsContract = (versions: Suite<OpenReadModels>): void => {
  const unread = () => Promise.resolve(true)

  versions('a version that was never written is empty', async ({ readModels }) => {
    const { spec, put, next } = aCollection()
    const reader = readModels.reader(spec)
    assert.is(await reader.get('a'), null)
    assert.is(await reader.checkpoint(), null)
    assert.equal(await reader.find(byTime), { items: [], total: 0 })
    const writer = await readModels.writer(spec)
    assert.is(await writer.checkpoint(), null)
    await writer.write([put('a', { v: 1 })], next())
    assert.equal(await reader.get('a'), { v: 1 })
  })

  versions('two versions are written side by side, and each reader sees its own', async ({ readModels }) => {
    const { spec, put } = aCollection()
    const both = [1, 2].map((version) => ({ ...spec, version }))
    const readers = both.map((one) => readModels.reader(one))
    const writers = await Promise.all(both.map((one) => readModels.writer(one)))
    for (const [i, writer] of writers.entries()) {
      const doc = { id: 'a', env: 'x', v: i }
      await writer.write(i === 0 ? [put('a', doc)] : [put('a', doc), put('b', doc)], cursorOf(3 + i))
    }
    for (const [i, reader] of readers.entries()) {
      assert.is((await reader.get('a'))?.['v'], i)
      assert.is((await reader.find(inEnv('x'))).total, 1 + i)
      assert.is((await reader.getMany(['a', 'b'])).size, 1 + i)
      assert.is((await Array.fromAsync(reader.scan())).length, 1 + i)
      assert.is(await reader.checkpoint(), cursorOf(3 + i))
    }
  })

  versions('are listed with the name of their collection', async ({ readModels }) => {
    const { spec } = aCollection()
    const versionsOf = async () =>
      (await readModels.versions()).flatMap(({ name, version }) => (name === spec.name ? [version] : []))
    assert.equal(await versionsOf(), [])
    for (const version of [2, 11]) await readModels.writer({ ...spec, version })
    assert.equal((await versionsOf()).toSorted(), [11, 2])
    await readModels.drop({ ...spec, version: 2 }, unread)
    assert.equal(await versionsOf(), [11])
  })

  versions(
    'readers continue with the documents that replace those of their version',
    async ({ readModels }) => {
      const { spec, put, next } = aCollection()
      const shadow = { ...spec, name: `${spec.name}~new` }
      const writer = await readModels.writer(spec)
      await writer.write(
        [put('a', { id: 'a', env: 'x', at: 1 }), put('b', { id: 'b', env: 'x', at: 2 })],
        next(),
      )
      const reader = readModels.reader(spec)
      assert.is((await reader.find(byTime)).total, 2)
      const rebuilt = await readModels.writer(shadow)
      const checkpoint = next()
      await rebuilt.write([put('b', { id: 'b', env: 'x', at: 3 })], checkpoint)
      await readModels.replace(spec, shadow)
      assert.equal(await reader.get('a'), null)
      assert.equal((await reader.find(inEnv('x'))).items, [{ id: 'b', env: 'x', at: 3 }])
      assert.is((await reader.find(inEnv('x'))).total, 1)
      assert.is(await reader.count(), 1)
      assert.is(await reader.checkpoint(), checkpoint)
      const names = (await readModels.versions()).map(({ name }) => name)
      assert.not.ok(names.includes(shadow.name))
      const after = await readModels.writer(spec)
      await after.write([put('c', { id: 'c', env: 'x', at: 4 })], next())
      assert.is((await reader.find(inEnv('x'))).total, 2)
    },
  )

  versions('no reader misses a document while the documents are replaced', async ({ readModels }) => {
    const { spec, put, next } = aCollection()
    const shadow = { ...spec, name: `${spec.name}~new` }
    const ids = Array.from({ length: 20 }, (_, n) => `d${n}`)
    const fill = async (version: CollectionSpec, at: number) => {
      const writer = await readModels.writer(version)
      await writer.write(
        ids.map((id) => put(id, { id, env: 'x', at })),
        next(),
      )
    }
    await fill(spec, 0)
    const reader = readModels.reader(spec)
    let isOver = false
    const reading = async (): Promise<void> => {
      while (!isOver) {
        assert.is((await reader.get('d1'))?.['id'], 'd1')
        assert.is((await reader.getMany(['d2', 'd3'])).size, 2)
        const { items, total } = await reader.find(inEnv('x', { limit: 5 }))
        assert.equal([items.length, total], [5, ids.length])
        await new Promise((resolve) => setImmediate(resolve))
      }
    }
    const readers = Array.from({ length: 6 }, reading)
    const read = Promise.all(readers).finally(() => (isOver = true))
    read.catch(() => {}) // its failure is reported below
    for (let at = 1; at <= 3 && !isOver; at++) {
      await fill(shadow, at)
      await readModels.replace(spec, shadow)
      assert.is((await reader.get('d1'))?.['at'], at)
    }
    isOver = true
    await read
  })

  versions('a version that a node reads replaces no other', async ({ readModels }) => {
    const { spec, put, next } = aCollection()
    const later = { ...spec, version: 2 }
    await (await readModels.writer(spec)).write([put('a', { id: 'a', env: 'x', at: 1 })], next())
    await readModels.writer(later)
    assert.is(await readModels.replace(later, spec, () => Promise.resolve(false)), false)
    assert.is((await readModels.reader(spec).get('a'))?.['at'], 1)
    assert.is(await readModels.reader(later).get('a'), null)
  })

  versions('a version that no node reads replaces another, and is refused from then on', async (context) => {
    const { readModels } = context
    const { spec, put, next } = aCollection()
    const later = { ...spec, version: 2 }
    const checkpoint = next()
    const former = readModels.reader(spec)
    await (await readModels.writer(spec)).write([put('a', { id: 'a', env: 'x', at: 1 })], checkpoint)
    assert.is((await former.get('a'))?.['at'], 1)
    await readModels.writer(later)
    assert.is(await readModels.replace(later, spec, unread), true)
    const reader = readModels.reader(later)
    assert.equal((await reader.find(inEnv('x'))).items, [{ id: 'a', env: 'x', at: 1 }])
    assert.is((await reader.find(inEnv('x'))).total, 1)
    assert.is(await reader.checkpoint(), checkpoint)
    const refusal = () => former.get('a').then(() => 'an answer', messageOf)
    await until(async () => (await refusal()) !== 'an answer')
    assert.match(await refusal(), `${spec.name}@1 was dropped`)
  })

  versions(
    'a version can be replaced again, and a repeated replacement changes nothing',
    async ({ readModels }) => {
      const { spec, put, next } = aCollection()
      const shadow = { ...spec, name: `${spec.name}~new` }
      await (await readModels.writer(spec)).write([put('a', { id: 'a', env: 'x', at: 0 })], next())
      for (const at of [1, 2]) {
        await (await readModels.writer(shadow)).write([put('a', { id: 'a', env: 'x', at })], next())
        for (let n = 0; n < 2; n++) await readModels.replace(spec, shadow)
        assert.equal(await readModels.reader(spec).get('a'), { id: 'a', env: 'x', at })
      }
    },
  )

  versions(
    'documents that replace those of a version with other indexes are found by each of its queries',
    async ({ readModels }) => {
      const { spec, next } = aCollection()
      const indexes: CollectionSpec['indexes'] = [
        { equal: ['status'], sort: 'path' },
        { equal: ['env'], sort: 'at' }, // not counted
        { equal: [], sort: 'size', sparse: true },
      ]
      const later: CollectionSpec = {
        ...spec,
        version: 2,
        indexes: [...spec.indexes, { equal: [], sort: 'size' }],
      }
      const [earlier, whole] = [
        { ...spec, indexes },
        { ...later, name: `${spec.name}_whole` },
      ]
      const writes = Array.from({ length: 60 }, (_, n): Write => {
        const doc: Doc = {
          id: `d${n}`,
          env: ['x', 'y', null, 7][n % 4],
          at: `t${n % 7}`,
          ...(n % 3 > 0 && { status: ['a', true, 1][n % 3], flag: n % 2 === 0 }),
          size: [null, 5, '5', n][n % 4],
          ...(n % 5 > 0 && { path: `p${n % 6}` }),
          ...(n % 11 === 0 && { nested: { a: [1] } }),
        }
        return { id: `d${n}`, doc: n % 13 === 0 ? null : doc, cursor: next() }
      })
      for (const each of [earlier, whole]) {
        const writer = await readModels.writer(each)
        await writer.write(writes, next())
      }
      const laterWriter = () => readModels.writer(later)
      await laterWriter()
      await readModels.replace(later, earlier)
      const page = { limit: 5, offset: 0 }
      const queries: Query[] = [
        ...['x', 'y', null, 7, 'none'].flatMap((env): Query[] => [
          { equal: { env }, sort: 'at', ...page },
          { equal: { env }, sort: 'at', limit: 5, offset: 10, descending: true },
          { equal: { env }, sort: 'path', ...page, prefix: 'p' },
          { equal: { env }, sort: 'path', ...page, from: 'p2', before: 'p4' },
          { equal: { env, status: true }, sort: 'at', ...page, limit: 0 },
          { equal: { env, status: 1 }, sort: 'at', ...page, descending: true },
        ]),
        { equal: {}, sort: 'at', limit: 100, offset: 0, from: 't3' },
        { equal: { flag: true }, sort: 'size', limit: 100, offset: 0 },
        { equal: { flag: false }, sort: 'size', ...page, from: 5 },
        { equal: {}, sort: 'size', limit: 100, offset: 0 },
        { equal: {}, sort: 'size', limit: 100, offset: 3, from: '' },
      ]
      const compare = async (): Promise<void> => {
        const complete = readModels.reader(whole)
        for (const reader of [readModels.reader(later), await laterWriter()])
          for (const query of queries)
            assert.equal(await reader.find(query), await complete.find(query), JSON.stringify(query))
      }
      await compare()
      const more: Write[] = [
        { id: 'd1', doc: null, cursor: next() },
        { id: 'e', doc: { id: 'e', env: 'x', at: 't2', flag: true, size: 2, path: 'p3' }, cursor: next() },
      ]
      for (const each of [later, whole]) await (await readModels.writer(each)).write(more, next())
      await compare()
      const shadow = { ...later, name: `${spec.name}~new` }
      await (await readModels.writer(shadow)).write([...writes, ...more], next())
      await readModels.replace(later, shadow)
      await compare()
    },
  )

  versions(
    'every last write is listed with its id, also those of removed documents',
    async ({ readModels }) => {
      const { spec, put, next } = aCollection()
      const writer = await readModels.writer(spec)
      const writes = [put('a', { id: 'a' }), put('b', { id: 'b' })]
      await writer.write(writes, next())
      const removal = put('b', null)
      await writer.write([removal], next())
      const entries = await Array.fromAsync(writer.entries())
      assert.equal(
        entries.toSorted(([a], [b]) => a.localeCompare(b)),
        [
          ['a', { doc: { id: 'a' }, cursor: writes[0]?.cursor }],
          ['b', { doc: null, cursor: removal.cursor }],
        ],
      )
      assert.is(await writer.count(), 1)
    },
  )

  versions('a version that is read is not dropped', async ({ readModels }) => {
    const { spec, put, next } = aCollection()
    await (await readModels.writer(spec)).write([put('a', { id: 'a' })], next())
    await readModels.drop(spec, () => Promise.resolve(false))
    assert.equal(await readModels.reader(spec).get('a'), { id: 'a' })
  })

  versions('a dropped version refuses its readers; it is never empty for them', async ({ readModels }) => {
    const { spec, put, next } = aCollection()
    const reader = readModels.reader(spec)
    await (await readModels.writer(spec)).write([put('a', { id: 'a', at: 1 })], next())
    assert.is((await reader.find(byTime)).total, 1)
    await readModels.drop(spec, unread)
    const refused = (work: Promise<unknown>) => work.then(() => 'an answer', String)
    await until(async () => (await refused(reader.get('a'))) !== 'an answer')
    for (const work of [
      reader.get('a'),
      reader.getMany(['a']),
      reader.find(byTime),
      reader.checkpoint(),
      Array.fromAsync(reader.scan()),
    ]) {
      const error: unknown = await work.then(
        () => null,
        (thrown: unknown) => thrown,
      )
      assert.ok(isAppError(error, 'unavailable'), String(error))
      assert.not.ok(error.retryable)
      assert.match(error.message, `${spec.name}@1 was dropped`)
    }
  })

  versions('a version that was dropped can be built again', async ({ readModels }) => {
    const { spec, put, next } = aCollection()
    await (await readModels.writer(spec)).write([put('a', { id: 'a', env: 'x' })], next())
    await readModels.drop(spec, unread)
    const again = await readModels.writer(spec)
    assert.is(await again.checkpoint(), null)
    await again.write([put('b', { id: 'b', env: 'x' })], next())
    assert.equal(await idsIn(again.find(inEnv('x'))), ['b'])
  })

  versions('readers of another version never fail while one is dropped', async ({ readModels }) => {
    const { spec, put, next } = aCollection()
    const docs = Array.from({ length: 600 }, (_, i) => ({ id: `d${i}`, env: 'x', at: cursorOf(i) }))
    for (const version of [1, 2]) {
      const writer = await readModels.writer({ ...spec, version })
      await writer.write(
        docs.map((doc) => put(doc.id, { ...doc, version })),
        next(),
      )
    }
    const reader = readModels.reader({ ...spec, version: 2 })
    let isDropped = false
    const dropping = readModels.drop(spec, unread).then(() => (isDropped = true))
    while (!isDropped) {
      const [one, some, page] = await Promise.all([
        reader.get('d1'),
        reader.getMany(['d2', 'd3']),
        reader.find(inEnv('x')),
      ])
      assert.equal([one?.['version'], some.size, page.total], [2, 2, 600])
      await new Promise((resolve) => setImmediate(resolve))
    }
    await dropping
  })
}
