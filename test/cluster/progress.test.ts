import { getEventListeners } from 'node:events'
import * as assert from 'uvu/assert'
import { openEventStore } from '../../src/adapters/embedded/eventStore/index.ts'
import { openReadModels } from '../../src/adapters/embedded/readModels/index.ts'
import { ProgressReader, ProgressReporter } from '../../src/cluster/progress.ts'
import { silent } from '../../src/logger.ts'
import type { Hints } from '../../src/ports/hints.ts'
import type { ReadModels } from '../../src/ports/readModels.ts'
import { Projector } from '../../src/projections/projector.ts'
import { Projectors } from '../../src/projections/projectors.ts'
import { any, life, newEvents } from '../projections/projectedNames.ts'
import { held, NAME } from '../projections/rebuildHarness.ts'
import { restorable } from '../support/restorable.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

/** Before the position of every fact. */
const START_OF_LOG = '0'

const noHints: Hints = { connected: false, publish: () => {}, on: () => () => {}, close: async () => {} }

/** Read models that refuse the first write. */
const refusingOnce = (readModels: ReadModels): ReadModels => {
  let refusals = 1
  return Object.assign(Object.create(readModels) as ReadModels, {
    writer: async (spec: Parameters<ReadModels['writer']>[0]) => {
      const collection = await readModels.writer(spec)
      return Object.assign(Object.create(collection) as typeof collection, {
        write: (...given: Parameters<typeof collection.write>) => {
          if (refusals-- > 0) return Promise.reject(new Error('The connection was reset'))
          return collection.write(...given)
        },
      })
    },
  })
}

const reports = suite('the positions of projectors')

reports('reach the other nodes, although the first write of the last one failed', async () => {
  const readModels = openReadModels({ dir: tempDir() })
  const ended = new AbortController()
  const reporter = new ProgressReporter(refusingOnce(readModels), noHints)
  reporter.moved('runs', '0000000000000007')
  await reporter.run(ended.signal).catch(() => {}) // it is started again, as by the role
  const running = reporter.run(ended.signal)
  const reader = new ProgressReader({ readModels, hints: noHints }, ended.signal)
  await reader.reach('runs', '0000000000000007', AbortSignal.timeout(10_000))
  assert.is(reader.position('runs'), '0000000000000007')
  ended.abort()
  await running
  await readModels.close()
})

reports('are reported again and again without anything that grows', async () => {
  const readModels = openReadModels({ dir: tempDir() })
  const ended = new AbortController()
  const reporter = new ProgressReporter(readModels, noHints)
  const running = reporter.run(ended.signal)
  const reader = new ProgressReader({ readModels, hints: noHints }, ended.signal)
  for (let n = 1; n <= 20; n++) {
    reporter.moved('runs', `${n}`.padStart(16, '0'))
    await reader.reach('runs', `${n}`.padStart(16, '0'), ended.signal)
  }
  const listeners = getEventListeners(ended.signal, 'abort').length
  assert.ok(listeners < 10, `${listeners} listeners of one signal after 20 reports`)
  ended.abort()
  await running
  await readModels.close()
})

const P = '0000000000000007'

reports('are removed with their read model, and are then reported again from the same one on', async () => {
  const readModels = openReadModels({ dir: tempDir() })
  const ended = new AbortController()
  const first = new ProgressReporter(readModels, noHints)
  const running = [first.run(ended.signal)]
  const reach = () =>
    new ProgressReader({ readModels, hints: noHints }, ended.signal).reach('runs', P, ended.signal)
  for (let n = 0; n < 3; n++) {
    first.moved('runs', P)
    await reach()
    await new ProgressReporter(readModels, noHints).forget('runs') // by a node of a later build
    assert.not(await first.hasReported('runs'))
    const next = new ProgressReporter(readModels, noHints)
    running.push(next.run(ended.signal))
    next.moved('runs', P)
    await reach()
    await first.forget('runs')
  }
  ended.abort()
  await Promise.all(running)
  await readModels.close()
})

reports('are those of a complete read model, also if one of its name was reported before', async () => {
  const readModels = openReadModels({ dir: tempDir() })
  const store = openEventStore({ dir: tempDir() })
  await store.append('p', newEvents(life('p', 1)), 'none')
  const ended = new AbortController()
  const reporter = new ProgressReporter(readModels, noHints)
  const running = reporter.run(ended.signal)
  const reader = () => new ProgressReader({ readModels, hints: noHints }, ended.signal)
  reporter.moved(NAME, START_OF_LOG)
  await reader().reach(NAME, START_OF_LOG, ended.signal)
  const reads = held(store)
  const projector = new Projector(any, {
    readModels,
    store: reads,
    onNew: (name) => reporter.forget(name),
    onMoved: (name, position) => reporter.moved(name, position),
    wasComplete: (name) => reporter.hasReported(name),
  })
  const projecting = projector.run(ended.signal)
  await until(() => reads.waiting.size === 1)
  assert.not(await reporter.hasReported(NAME))
  reads.release()
  const readerOfNew = reader()
  await readerOfNew.reach(NAME, START_OF_LOG, ended.signal)
  assert.is(readerOfNew.position(NAME), await store.head())
  assert.is(await readModels.reader(any).count(), 1)
  ended.abort()
  await Promise.all([running, projecting])
  await store.close()
  await readModels.close()
})

reports('are stored again when only they were restored from a backup', async () => {
  const store = openEventStore({ dir: tempDir() })
  await store.append('p', newEvents(life('p', 1)), 'none')
  const reached = async (readModels: ReadModels) => {
    const { signal } = new AbortController()
    await new ProgressReader({ readModels, hints: noHints }, signal).reach(NAME, await store.head(), signal)
  }
  const projecting = (readModels: ReadModels) => {
    const stopping = new AbortController()
    const reporter = new ProgressReporter(readModels, noHints)
    const projectors = new Projectors({
      readModels,
      store,
      projections: [any],
      logger: silent,
      restoredLookMs: 5,
      onNew: (name) => reporter.forget(name),
      onMoved: (name, position) => reporter.moved(name, position),
      wasComplete: (name) => reporter.hasReported(name),
      lostReports: () => reporter.lost(),
    })
    const running = [reporter.run(stopping.signal), projectors.run(stopping.signal)]
    return () => (stopping.abort(), Promise.all(running))
  }
  const [backup, first] = [openReadModels({ dir: tempDir() }), openReadModels({ dir: tempDir() })]
  const stopCopying = projecting(backup)
  await reached(backup)
  await stopCopying()
  const { readModels, restore } = restorable(first)
  const stop = projecting(readModels)
  await reached(readModels)
  await store.append('s', newEvents([{ type: 'StreamCreated', stream_id: 's' }]), 'none')
  await reached(readModels)
  restore(backup)
  await reached(readModels) // by a new node, while the log does not grow
  await stop()
  for (const each of [store, first, backup]) await each.close()
})

reports.run()
