import { getEventListeners } from 'node:events'
import * as assert from 'uvu/assert'
import { openReadModels } from '../../src/adapters/embedded/readModels/index.ts'
import { ProgressReader, ProgressReporter } from '../../src/cluster/progress.ts'
import type { Hints } from '../../src/ports/hints.ts'
import type { ReadModels } from '../../src/ports/readModels.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

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

reports.run()
