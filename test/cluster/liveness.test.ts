import * as assert from 'uvu/assert'
import { openReadModels } from '../../src/adapters/embedded/readModels/index.ts'
import { Liveness } from '../../src/cluster/liveness.ts'
import { AppError } from '../../src/errors.ts'
import { silent } from '../../src/logger.ts'
import { keepGoing } from '../../src/loops/keepGoing.ts'
import type { CollectionSpec, Doc, ReadModels } from '../../src/ports/readModels.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

/** Read models whose writes wait for `before`, which may reject. */
const openSlow = (before: () => Promise<void>): ReadModels => {
  const readModels = openReadModels({ dir: tempDir() })
  const writer = readModels.writer.bind(readModels)
  readModels.writer = async <D extends Doc>(spec: CollectionSpec) => {
    const collection = await writer<D>(spec)
    const write = collection.write.bind(collection)
    collection.write = async (...written) => {
      await before()
      await write(...written)
    }
    return collection
  }
  return readModels
}

const heartbeats = suite('the heartbeats of an id')

heartbeats('begin when one is stored, not when a write without them ends', async () => {
  const writing = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let writes = 0
  const readModels = openSlow(async () => writing[writes++]?.promise)
  const liveness = new Liveness(readModels)
  const ending = new AbortController()
  const stored: string[] = []
  void liveness.join('node').then(() => stored.push('node'))
  const running = liveness.run(ending.signal)
  await until(() => writes === 1)
  void liveness.join('worker').then(() => stored.push('worker'))
  writing[0]?.resolve()
  await until(() => writes === 2)
  assert.equal(stored, ['node'])
  writing[1]?.resolve()
  await liveness.join('worker')
  assert.equal(stored, ['node', 'worker'])
  ending.abort()
  await running
  await readModels.close()
})

heartbeats('begin when the read models answer again, however often they did not', async () => {
  let refused = 0
  let answers = false
  const readModels = openSlow(async () => {
    if (answers) return
    refused++
    throw new AppError('unavailable', 'the read models do not answer')
  })
  const liveness = new Liveness(readModels)
  const ending = new AbortController()
  let isStored = false
  const joined = liveness.join('worker').then(() => void (isStored = true))
  const running = keepGoing('The liveness', (until) => liveness.run(until), {
    signal: ending.signal,
    logger: silent,
  })
  await until(() => refused > 1)
  assert.not(isStored)
  answers = true
  await joined
  ending.abort()
  await running
  await readModels.close()
})

heartbeats('are removed with the id of a dead worker, and stored again by one that continues', async () => {
  const readModels = openReadModels({ dir: tempDir() })
  const collection = readModels.reader<{ count: number }>({ name: 'beats', version: 1, indexes: [] })
  const ids = async () => [...(await collection.getMany(['lost', 'other'])).keys()]
  const worker = new Liveness(readModels)
  const beatUntil = async (isStored: () => Promise<unknown>) => {
    const pausing = new AbortController()
    const running = worker.run(pausing.signal)
    await isStored()
    pausing.abort()
    await running
  }
  await beatUntil(() => Promise.all([worker.join('lost'), worker.join('other')]))
  const recovery = new Liveness(readModels)
  await recovery.forget('lost')
  assert.equal(await ids(), ['other'])
  await beatUntil(() => until(async () => (await ids()).length === 2))
  await recovery.forget('lost')
  await recovery.forget('lost')
  assert.equal(await ids(), ['other'])
  await readModels.close()
})

heartbeats('end when this process has another id', async () => {
  const readModels = openReadModels({ dir: tempDir() })
  const collection = readModels.reader<{ count: number }>({ name: 'beats', version: 1, indexes: [] })
  const counts = async () => [...(await collection.getMany(['former', 'present']))]
  const liveness = new Liveness(readModels)
  const ending = new AbortController()
  const running = liveness.run(ending.signal)
  await liveness.join('former')
  await new Liveness(readModels).forget('former') // as the recovery does
  liveness.part('former')
  await liveness.join('present')
  const [[, { count }] = ['', { count: 0 }]] = await counts()
  const later = await until(async () => {
    const found = await counts()
    return found.some(([id, beat]) => id === 'present' && beat.count > count + 1) ? found : null
  })
  assert.equal(
    later.map(([id]) => id),
    ['present'],
  )
  ending.abort()
  await running
  await readModels.close()
})

heartbeats(
  'of a worker end while it is cut off from the event store, and those of its node do not',
  async () => {
    const readModels = openReadModels({ dir: tempDir() })
    const collection = readModels.reader<{ count: number }>({ name: 'beats', version: 1, indexes: [] })
    const countOf = async (id: string) => (await collection.get(id))?.count ?? 0
    const liveness = new Liveness(readModels)
    const ending = new AbortController()
    let isCutOff = false
    const joined = Promise.all([liveness.join('node'), liveness.join('worker', { unless: () => isCutOff })])
    const running = liveness.run(ending.signal)
    await joined
    const passes = async () => {
      const before = await countOf('node')
      await until(async () => (await countOf('node')) > before + 1)
    }
    isCutOff = true
    await passes() // a heartbeat that had begun is stored
    const last = await countOf('worker')
    await passes()
    assert.is(await countOf('worker'), last)
    isCutOff = false
    await until(async () => (await countOf('worker')) > last)
    isCutOff = true
    ending.abort()
    await running
    await liveness.leave()
    assert.equal([await countOf('node'), await countOf('worker')], [0, 0])
    await readModels.close()
  },
)

heartbeats('are not read for ids about which nobody asks any more', async () => {
  const readModels = openReadModels({ dir: tempDir() })
  const writer = readModels.writer.bind(readModels)
  let read: readonly string[] = []
  readModels.writer = async <D extends Doc>(spec: CollectionSpec) => {
    const collection = await writer<D>(spec)
    const getMany = collection.getMany.bind(collection)
    collection.getMany = (ids) => getMany((read = ids))
    return collection
  }
  const liveness = new Liveness(readModels, { unaskedMs: 100 })
  const ending = new AbortController()
  const asking = setInterval(() => liveness.silentMs('present'), 10)
  for (let n = 0; n < 100; n++) liveness.silentMs(`former ${n}`)
  const running = liveness.run(ending.signal)
  await until(() => read.length === 1)
  assert.equal(read, ['present'])
  clearInterval(asking)
  ending.abort()
  await running
  await readModels.close()
})

heartbeats('that were removed leave nothing behind after the next start of a node', async () => {
  const readModels = openReadModels({ dir: tempDir() })
  const start = async (id: string) => {
    const liveness = new Liveness(readModels)
    const ending = new AbortController()
    const running = liveness.run(ending.signal)
    await liveness.join(id)
    ending.abort()
    await running
    await liveness.leave()
  }
  for (const id of ['first', 'second', 'third']) await start(id)
  const left: string[] = []
  const collection = await readModels.writer({ name: 'beats', version: 1, indexes: [] })
  for await (const [id] of collection.entries()) left.push(id)
  assert.equal(left, ['third'])
  await readModels.close()
})

heartbeats.run()
