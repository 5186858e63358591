import * as assert from 'uvu/assert'
import { dropVersion } from '../../../src/adapters/mongodb/dropping.ts'
import { Registry } from '../../../src/adapters/mongodb/registry.ts'
import { engineUrl } from '../../support/engines.ts'
import {
  collectionsIn,
  type Context,
  inEnv,
  opened,
  refused,
  spec,
  unread,
} from '../../support/mongoReadModels.ts'
import { notHere } from '../../support/notHere.ts'
import { suite } from '../../support/suite.ts'
import { until } from '../../support/until.ts'

const title = 'MongoDB read models: removals of versions'
const server = engineUrl('mongodb')
if (server) {
  const nodes = suite<Context>(title)
  nodes.before.each(async (context) => Object.assign(context, await opened(server)))
  nodes.after.each(({ close }) => close())

  nodes(
    'a version that another node still reads is not dropped, although it has announced nothing',
    async ({ readModels, openAnother, client }) => {
      await (await readModels.writer(spec)).write([{ id: 'a', doc: { env: 'x', at: 1 }, cursor: '1' }], '1')
      const reader = (await openAnother()).reader(spec)
      assert.is((await reader.find(inEnv)).total, 1)
      let isOver = false
      const dropping = readModels.drop(spec, unread).then(() => (isOver = true))
      while (!isOver) {
        assert.equal(await reader.get('a'), { env: 'x', at: 1 })
        assert.is((await reader.find(inEnv)).total, 1)
      }
      await dropping
      assert.ok((await collectionsIn(client)).includes('runs__v1'))
      assert.is((await reader.find(inEnv)).total, 1)
    },
  )

  nodes('a version that a starting node registers is not dropped', async ({ readModels, openAnother }) => {
    await (await readModels.writer(spec)).write([{ id: 'a', doc: { env: 'x', at: 1 }, cursor: '1' }], '1')
    const other = await openAnother()
    let asked = 0
    await readModels.drop(spec, async () => {
      if (++asked === 2) await other.writer(spec)
      return true
    })
    assert.is(await other.reader(spec).checkpoint(), '1')
    assert.equal(await other.reader(spec).get('a'), { env: 'x', at: 1 })
  })

  nodes(
    'a removal that was interrupted is completed, also when only its collection is left',
    async ({ readModels, openAnother, client }) => {
      await (await readModels.writer(spec)).write([{ id: 'a', doc: { env: 'x' }, cursor: '1' }], '1')
      const dying = await openAnother()
      const interrupted = refused(dying.drop(spec, unread))
      await until(async () => (await client.db().collection('versions').findOne({}))?.['dropping'])
      await dying.close()
      await interrupted
      assert.ok((await collectionsIn(client)).includes('runs__v1'))
      await client.db().collection('versions').deleteMany({})
      await readModels.drop(spec, unread)
      assert.not((await collectionsIn(client)).includes('runs__v1'))
    },
  )

  nodes('what an interrupted removal left is not in the version that is created again', async (context) => {
    const { readModels, client } = context
    const writes = Array.from({ length: 20 }, (_, n) => ({
      id: `d${n}`,
      doc: { env: 'x', at: n },
      cursor: '1',
    }))
    const created = async () => {
      const writer = await readModels.writer(spec)
      await writer.write(writes, '1')
      return writer.find({ ...inEnv, limit: 5 })
    }
    const found = await created()
    assert.is(found.total, 20)
    await client.db().collection('versions').deleteMany({})
    await client.db().dropCollection('runs__v1__counts')
    assert.equal(await created(), found)
  })

  /** Removes a version on a node whose registry does something else too. */
  const removing = ({ client }: Context, other: (registry: Registry) => Partial<Registry>) => {
    const registry = new Registry({ db: client.db() })
    const own = other(registry)
    const seen = new Proxy(registry, {
      get: (_, name) => {
        const value: unknown = Reflect.get(name in own ? own : registry, name)
        return typeof value === 'function' ? value.bind(registry) : value
      },
    })
    return dropVersion(
      spec,
      { db: client.db(), registry: seen, signal: new AbortController().signal },
      unread,
    )
  }

  nodes('a removal drops nothing that another node has created since', async (context) => {
    const { readModels, openAnother } = context
    await (await readModels.writer(spec)).write([{ id: 'a', doc: { env: 'x', at: 1 }, cursor: '1' }], '1')
    const other = await openAnother()
    await removing(context, (registry) => ({
      async forget(...forgotten) {
        const isForgotten = await registry.forget(...forgotten)
        await (await other.writer(spec)).write([{ id: 'b', doc: { env: 'x', at: 2 }, cursor: '2' }], '2')
        return isForgotten
      },
    }))
    assert.equal(await other.reader(spec).find(inEnv), { items: [{ env: 'x', at: 2 }], total: 1 })
  })

  nodes('a removal by a process that was stopped asks again before it drops', async (context) => {
    const { readModels, openAnother } = context
    await (await readModels.writer(spec)).write([{ id: 'a', doc: { env: 'x', at: 1 }, cursor: '1' }], '1')
    const other = await openAnother()
    const machineNow = Date.now
    let asked = 0
    try {
      await removing(context, (registry) => ({
        async row(version) {
          const row = await registry.row(version)
          if (++asked !== 2) return row // the second time before the documents
          await (await other.writer(spec)).write([{ id: 'b', doc: { env: 'x', at: 2 }, cursor: '2' }], '2')
          Date.now = () => machineNow() + 60_000
          return row
        },
      }))
      assert.ok(asked >= 2)
    } finally {
      Date.now = machineNow
    }
    assert.equal(await other.reader(spec).find(inEnv), { items: [{ env: 'x', at: 2 }], total: 1 })
  })

  nodes.run()
} else notHere(title, 'set SVC_TEST_MONGODB')
