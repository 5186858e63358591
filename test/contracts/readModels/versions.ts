import * as assert from 'uvu/assert'
import type { Suite } from '../../support/suite.ts'
import { until } from '../../support/until.ts'
import { aCollection, byTime, cursorOf, idsIn, inEnv, sorted, type OpenReadModels } from './collection.ts'

/** The rules for readers while versions are created and dropped. */
export const versionsContract = (versions: Suite<OpenReadModels>): void => {
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

  versions('a reader reports the position of the version it sees', async ({ readModels }) => {
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
}
