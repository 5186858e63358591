import * as assert from 'uvu/assert'
import { openReadModels } from '../../src/adapters/embedded/readModels/index.ts'
import { openLogger } from '../../src/logger.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import type { ReadModels } from '../../src/ports/readModels.ts'
import { Projectors } from '../../src/projections/projectors.ts'
import { restorable } from '../support/restorable.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'
import { any, dump, life, type NameDoc, newEvents, names, projecting } from './projectedNames.ts'

const watch = projecting('the watch over restored read models')

const projectorsOf = (readModels: ReadModels, store: EventStore, printed: string[] = []) =>
  new Projectors({
    readModels,
    store,
    projections: [any],
    logger: openLogger((line) => void printed.push(line)),
    restoredLookMs: 5,
  })

watch(
  'a read model that was restored gets the facts that it lacks, also if none follows',
  async (context) => {
    const { store, stopping } = context
    await store.append('a', newEvents(life('a', 2)), 'none')
    const backup = openReadModels({ dir: tempDir() })
    const copying = new AbortController()
    const copied = projectorsOf(backup, store)
    const copies = copied.run(copying.signal)
    await copied.reach('names@1', await store.head())
    copying.abort()
    await copies

    const { readModels, restore } = restorable(context.readModels)
    const printed: string[] = []
    const projectors = projectorsOf(readModels, store, printed)
    const running = projectors.run(stopping.signal)
    await projectors.reach('names@1', await store.head())
    await store.append('b', newEvents(life('b', 3)), 'none')
    await projectors.reach('names@1', await store.head())
    const expected = await dump(context.readModels)
    restore(backup)
    await until(async () => (await backup.reader<NameDoc>(names).get('b')) !== null)
    await projectors.reach('names@1', await store.head())
    assert.equal(await dump(backup), expected)
    assert.is(printed.filter((line) => line.includes('names@1 was restored from a backup')).length, 1)
    stopping.abort()
    await running
    await backup.close()
  },
)

watch('a read model that was not restored is left alone', async ({ store, readModels, stopping }) => {
  const printed: string[] = []
  const projectors = projectorsOf(readModels, store, printed)
  const running = projectors.run(stopping.signal)
  for (let i = 0; i < 200; i++) {
    const { cursor } = await store.append(`p-${i}`, newEvents(life(`p-${i}`, 1)), 'none')
    await store.append(`s-${i}`, newEvents([{ type: 'StreamCreated', stream_id: 's' }]), 'none')
    if (i % 10 === 0) await projectors.reach('names@1', cursor)
  }
  await projectors.reach('names@1', await store.head())
  assert.equal(printed, [])
  stopping.abort()
  await running
})

watch.run()
