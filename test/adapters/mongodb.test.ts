import { type Document, MongoClient } from 'mongodb'
import * as assert from 'uvu/assert'
import type { Envelope } from '../../src/adapters/mongodb/envelope.ts'
import { commandOf, indexesOf, removedUpTo } from '../../src/adapters/mongodb/queries.ts'
import { serverOf } from '../../src/adapters/mongodb/server.ts'
import { Registry, type VersionRow } from '../../src/adapters/mongodb/registry.ts'
import { StoredVersion } from '../../src/adapters/mongodb/storedVersion.ts'
import { AppError, isAppError } from '../../src/errors.ts'
import type { Query } from '../../src/ports/readModels.ts'
import { runs } from '../../src/projections/runs.ts'
import { readModelsContract } from '../contracts/readModels.ts'
import { engineUrl } from '../support/engines.ts'
import {
  collectionsIn,
  type Context,
  inEnv,
  isFerretDB1,
  opened,
  refused,
  spec,
  spec2,
  unread,
} from '../support/mongoReadModels.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

/** A client of the same database that announces the commands it sends. */
const watchedClient = (url: string) => {
  const client = new MongoClient(url, { monitorCommands: true })
  return { client, database: { db: client.db() } }
}

const server = engineUrl('mongodb')

if (server) {
  readModelsContract('MongoDB', () => opened(server))

  const nodes = suite<Context>('MongoDB read models: several nodes')
  nodes.before.each(async (context) => Object.assign(context, await opened(server)))
  nodes.after.each(({ close }) => close())

  nodes(
    'a paused writer does not replace newer documents with its own',
    async ({ readModels, openAnother }) => {
      const paused = await readModels.writer(spec)
      const other = await (await openAnother()).writer(spec)
      assert.is((await paused.stored(['a', 'b', 'c'])).size, 0)
      await other.write(
        [
          { id: 'a', doc: { v: 5 }, cursor: '5' },
          { id: 'b', doc: null, cursor: '5' },
          { id: 'c', doc: { v: 2 }, cursor: '2' },
        ],
        '5',
      )
      await paused.write(
        ['a', 'b', 'c', 'd'].map((id) => ({ id, doc: { v: 4 }, cursor: '4' })),
        '4',
      )
      const stored = await other.stored(['a', 'b', 'c', 'd'])
      assert.equal(stored.get('a'), { doc: { v: 5 }, cursor: '5' })
      assert.equal(stored.get('b'), { doc: null, cursor: '5' })
      assert.equal(stored.get('c'), { doc: { v: 4 }, cursor: '4' })
      assert.equal(stored.get('d'), { doc: { v: 4 }, cursor: '4' })
      assert.is(await paused.checkpoint(), '5')
    },
  )

  nodes(
    'concurrent writers of the same documents leave the newest of each',
    async ({ readModels, openAnother }) => {
      const writers = [await readModels.writer(spec), await (await openAnother()).writer(spec)]
      const ids = Array.from({ length: 30 }, (_, i) => `d${i}`)
      const batch = (offset: number) =>
        ids.map((id, i) => ({ id, doc: { v: (i + offset) % 2 }, cursor: String((i + offset) % 2) }))
      await Promise.all(writers.map((writer, offset) => writer.write(batch(offset), '1')))
      const docs = await readModels.reader(spec).getMany(ids)
      assert.equal(
        ids.map((id) => docs.get(id)),
        ids.map(() => ({ v: 1 })),
      )
    },
  )

  nodes(
    'a writer that was stopped within a write sends no more documents',
    async ({ readModels, openAnother }) => {
      const other = await (await openAnother()).writer(spec)
      const stopped = await readModels.writer(spec)
      const writes = Array.from({ length: 1200 }, (_, i) => ({ id: `d${i}`, doc: { v: 1 }, cursor: '1' }))
      let asked = 0
      const refuseLate = () => {
        if (++asked > 2) throw new AppError('unavailable', 'late')
      }
      const error = await refused(stopped.write(writes, '1', { changes: [], refuseLate }))
      assert.ok(isAppError(error, 'unavailable'), String(error))
      assert.is(await other.count(), 1000)
      assert.is(await other.checkpoint(), null)
    },
  )

  nodes('forgets removals with an index', async ({ readModels, client }) => {
    const writer = await readModels.writer(spec)
    const doc = { env: 'x', at: 't' }
    await writer.write(
      ['a', 'b', 'c'].map((id) => ({ id, doc, cursor: '1' })),
      '1',
    )
    await writer.write(
      ['a', 'b'].map((id) => ({ id, doc: null, cursor: '2' })),
      '2',
    )
    const { filter, hint } = removedUpTo(spec, '2')
    assert.is(hint, indexesOf(spec)[0]?.name)
    const documents = client.db().collection<Envelope>('runs__v1')
    assert.is(await documents.countDocuments(filter), 2)
    assert.is(await writer.forgetRemovals('2'), 2)
    assert.is(await documents.countDocuments(), 1)
  })

  nodes('an exchange that a crash has interrupted is completed by the next writer', async (context) => {
    const { readModels, openAnother, client } = context
    const shadow = { ...spec, name: 'runs~new' }
    const doc = (at: number) => [{ id: 'a', doc: { env: 'x', at }, cursor: '1' }]
    await (await readModels.writer(spec)).write(doc(1), '1')
    await (await readModels.writer(shadow)).write(doc(2), '1')
    const reader = (await openAnother()).reader(spec)
    const registry = new Registry({ db: client.db() })
    await registry.setExchange(spec, { by: 'runs~new__v1', isMoving: true })
    await client.db().renameCollection('runs__v1', 'runs__v1~former')
    let isRead = false
    const read = reader.find(inEnv).finally(() => (isRead = true))
    await registry.row(spec)
    assert.not.ok(isRead)
    const writer = await readModels.writer(spec)
    const found = { items: [{ env: 'x', at: 2 }], total: 1 }
    assert.equal(await read, found)
    assert.equal(await writer.find(inEnv), found)
    assert.not((await collectionsIn(client)).some((name) => name.endsWith('~former')))
  })

  const shadow = { ...spec, name: 'runs~new' }
  const both = async ({ readModels }: Context) => {
    const doc = (at: number) => [{ id: 'a', doc: { env: 'x', at }, cursor: '1' }]
    const served = await readModels.writer(spec)
    await served.write(doc(1), '1')
    await (await readModels.writer(shadow)).write(doc(2), '2')
    return served
  }

  nodes('documents that another node has brought further are not replaced', async (context) => {
    const { readModels, openAnother } = context
    const served = await both(context)
    const later = { env: 'x', at: 3 }
    await (await (await openAnother()).writer(spec)).write([{ id: 'b', doc: later, cursor: '3' }], '3')
    assert.is(await readModels.replace(spec, shadow), false)
    assert.is((await readModels.reader(spec).find(inEnv)).total, 2)
    assert.is((await readModels.reader(shadow).get('a'))?.['at'], 2)
    await served.write([], '4')
    assert.is(await served.checkpoint(), '4')
  })

  nodes('a writer of the former documents is refused, so that it folds its events again', async (context) => {
    const { readModels, openAnother } = context
    await both(context)
    const other = await openAnother()
    const former = await other.writer(spec)
    assert.is(await readModels.replace(spec, shadow), true)
    const error = await refused(former.write([], '3'))
    assert.ok(isAppError(error, 'unavailable'), String(error))
    assert.match(error.message, 'runs__v1 has other documents now')
    const writer = await other.writer(spec)
    assert.is(await writer.checkpoint(), '2')
    await writer.write([], '3')
  })

  const rowsOf = ({ client }: Pick<Context, 'client'>) => client.db().collection<VersionRow>('versions')
  const meanwhile = {
    'another node begins to write': ({ openAnother }: Context) =>
      openAnother().then((other) => other.writer(spec)),
    'its new documents are built again': (context: Context) =>
      rowsOf(context).updateOne({ _id: 'runs~new__v1' }, { $set: { made: 'again' } }),
    'another node goes on': (context: Context) =>
      rowsOf(context).updateOne({ _id: 'runs__v1' }, { $set: { checkpoint: '3' } }),
  }
  for (const [what, act] of Object.entries(meanwhile))
    nodes(`an exchange that was announced does not take place if ${what}`, async (context) => {
      const { readModels, client } = context
      if (!(await isFerretDB1(client))) return
      await both(context)
      const replaced = readModels.replace(spec, shadow)
      await until(async () => (await rowsOf(context).findOne({ _id: 'runs__v1' }))?.exchange)
      await act(context)
      assert.is(await replaced, false)
      assert.is((await readModels.reader(spec).get('a'))?.['at'], 1)
      assert.is((await readModels.reader(shadow).get('a'))?.['at'], 2)
    })

  nodes(
    'a reader is refused when its version was dropped and built again',
    async ({ readModels, openAnother }) => {
      await (await readModels.writer(spec)).write([{ id: 'a', doc: { env: 'x' }, cursor: '1' }], '1')
      const other = await openAnother()
      const reader = other.reader(spec)
      assert.equal(await reader.get('a'), { env: 'x' })
      await readModels.drop(spec, unread) // the other node is silent for longer than this takes
      await (await readModels.writer(spec)).write([{ id: 'b', doc: { env: 'x' }, cursor: '1' }], '1')
      const error = await refused(reader.get('a'))
      assert.ok(isAppError(error, 'unavailable'), String(error))
      assert.match(error.message, 'runs@1 was dropped')
    },
  )

  nodes('the pointers of svc 0.1.0 stay as its nodes wrote them', async ({ readModels, client }) => {
    const pointers = client.db().collection<{ _id: string; live: object }>('pointers')
    const pointer = { _id: 'runs', live: { version: 1, indexes: '[]' } }
    await pointers.insertOne(pointer)
    await (await readModels.writer(spec2)).write([{ id: 'a', doc: { v: 2 }, cursor: '2' }], '2')
    await readModels.drop(spec, unread)
    assert.equal(await pointers.find().toArray(), [pointer])
    assert.equal(await readModels.reader(spec2).get('a'), { v: 2 })
  })

  nodes('written documents are visible to a node that opens later', async ({ readModels, openAnother }) => {
    await (await readModels.writer(spec)).write([{ id: 'a', doc: { env: 'x' }, cursor: '1' }], '3')
    await readModels.close()
    assert.ok(isAppError(await refused(readModels.reader(spec).get('a')), 'unavailable'))
    const later = await openAnother()
    assert.equal(await later.reader(spec).get('a'), { env: 'x' })
    assert.is(await later.reader(spec).checkpoint(), '3')
  })

  nodes(
    'refuses to write a version with indexes other than those it was created with',
    async ({ readModels, openAnother }) => {
      await readModels.writer(spec)
      const changed = { ...spec, indexes: [{ equal: [], sort: 'at' }] }
      assert.instance(await refused((await openAnother()).writer(changed)), Error)
    },
  )

  nodes(
    'refuses a document whose indexed field is not a scalar, because no retry would help',
    async ({ readModels }) => {
      const writer = await readModels.writer(spec)
      const error = await refused(writer.write([{ id: 'a', doc: { env: ['x'] }, cursor: '1' }], '1'))
      assert.instance(error, TypeError)
      assert.is(await writer.checkpoint(), null)
    },
  )

  nodes(
    'a writer whose database was dropped is refused, and starts again',
    async ({ readModels, client }) => {
      const writer = await readModels.writer(spec)
      await writer.write([{ id: 'a', doc: { env: 'x' }, cursor: '1' }], '1')
      await client.db().dropDatabase()
      const write = writer.write([{ id: 'a', doc: { env: 'x' }, cursor: '2' }], '2')
      assert.ok(isAppError(await refused(write), 'unavailable'))
      const again = await readModels.writer(spec)
      assert.is(await again.checkpoint(), null)
      await again.write([{ id: 'a', doc: { env: 'x', v: 3 }, cursor: '3' }], '3')
      assert.equal(await readModels.reader(spec).get('a'), { env: 'x', v: 3 })
    },
  )

  nodes('documents are found by an index, also on FerretDB 1', async ({ url, client, readModels }) => {
    const writer = await readModels.writer(spec)
    const ids = Array.from({ length: 20 }, (_, n) => `d${n}`)
    await writer.write(
      ids.map((id) => ({ id, doc: { env: 'x' }, cursor: '1' })),
      '1',
    )
    const { database, client: watched } = watchedClient(url)
    const server = await serverOf(database)
    const lists: unknown[] = []
    watched.on('commandStarted', ({ commandName, command }) => {
      if (commandName === 'find' && typeof command['filter']._id !== 'string') lists.push(command['filter'])
    })
    const found = await new StoredVersion(server, new Registry(database), spec).getMany([...ids, 'none'])
    assert.equal([...found.keys()].sort(), [...ids].sort())
    assert.is(lists.length > 0, !(await isFerretDB1(client)))
    await watched.close()
  })

  nodes('the total of a list is read, not counted', async ({ url, readModels }) => {
    const writer = await readModels.writer(runs)
    const docs = Array.from({ length: 300 }, (_, n) => ({
      run_id: `r${n}`,
      env_id: n % 3 === 0 ? 'x' : 'y',
      status: n % 2 === 0 ? 'failed' : 'succeeded',
      run_type: 'event',
      order: `2026-05-01T${10 + (n % 5)}:${10 + (n % 40)}:00.000Z/${String(n).padStart(16, '0')}`,
    }))
    const cursor = (n: number) => String(n + 1).padStart(16, '0')
    await writer.write(
      docs.map((doc, n) => ({ id: doc.run_id, doc, cursor: cursor(n) })),
      cursor(299),
    )
    const { database, client: watched } = watchedClient(url)
    const reader = new StoredVersion(await serverOf(database), new Registry(database), runs)
    const sent: string[] = []
    /** The fields by which counts are found. */
    const keys = new Set<string>()
    watched.on('commandStarted', ({ commandName, command }) => {
      sent.push(`${commandName} ${String(command[commandName])}`)
      if (String(command[commandName]).endsWith('__counts'))
        keys.add(Object.keys(command['filter'] as object).join())
    })
    const totalOf = async (equal: Query['equal'], more: Partial<Query> = {}) => {
      const found = await reader.find({
        equal,
        sort: 'order',
        descending: true,
        limit: 2,
        offset: 0,
        ...more,
      })
      assert.is(found.items.length, 2)
      return found.total
    }
    try {
      assert.is(await totalOf({ env_id: 'x' }), 100)
      assert.is(await totalOf({ env_id: 'y', status: 'failed' }), 100)
      assert.is(await totalOf({ env_id: 'y', run_type: 'event' }, { offset: 5 }), 200)
      assert.is(await totalOf({ env_id: 'x', status: 'failed', run_type: 'event' }), 50)
      const collection = `runs__v${runs.version}`
      const page = [`find ${collection}`, `find ${collection}__counts`]
      assert.equal(sent, [...page, ...page, ...page, ...page])
      sent.length = 0
      const ofStats = await reader.find({ equal: { env_id: 'x' }, sort: 'order', limit: 0, offset: 0 })
      assert.equal([ofStats.total, ofStats.items], [100, []])
      assert.equal(sent, [`find ${collection}__counts`], 'statistics read no document')
      assert.equal([...keys], ['_id'], 'each MongoDB has an index of it')
      const from = '2026-05-01T12:15'
      const since = docs.filter(({ env_id, order }) => env_id === 'x' && order >= from).length
      sent.length = 0
      assert.is(await totalOf({ env_id: 'x' }, { from }), since)
      assert.is(sent.filter((command) => command.startsWith('count')).length, 1) // of one minute
    } finally {
      await watched.close()
    }
  })

  nodes('each query of runs uses an index', async ({ readModels, client }) => {
    const collection = client.db().collection<{ _id: string }>(`runs__v${runs.version}`)
    await readModels.writer(runs)
    const made = await collection.indexes()
    if (await isFerretDB1(client)) {
      assert.equal(
        made.map(({ name }) => name),
        ['_id_'],
        'it uses no other',
      )
      return
    }
    for (const { name, key } of indexesOf(runs))
      assert.equal(made.find((index) => index.name === name)?.key, key)
    for (const [i, { equal, sort, sparse }] of runs.indexes.entries()) {
      const query = {
        equal: Object.fromEntries(equal.map((field) => [field, 'x'])),
        sort,
        limit: 10,
        offset: 0,
      }
      const command = commandOf(runs, sparse ? { ...query, from: '' } : query)
      const { filter, sort: order, hint } = command
      assert.is(hint, `i${i}`)
      const { queryPlanner } = await collection.find(filter as Document, { sort: order, hint }).explain()
      const plan = JSON.stringify(queryPlanner.winningPlan)
      assert.match(plan, `"indexName":"i${i}"`)
      assert.not.match(plan, /COLLSCAN|"SORT"/)
    }
  })

  nodes.run()
} else {
  const absent = suite('MongoDB read models without a server')
  absent('each index of the runs serves its query', () => {
    for (const [i, { equal, sort, sparse }] of runs.indexes.entries()) {
      const query = {
        equal: Object.fromEntries(equal.map((field) => [field, 'x'])),
        sort,
        limit: 1,
        offset: 0,
      }
      assert.is(commandOf(runs, sparse ? { ...query, from: '' } : query).hint, indexesOf(runs)[i]?.name)
    }
  })
  absent.run()
  process.stdout.write('[MongoDB was not exercised: set SVC_TEST_MONGODB]')
}
