import * as assert from 'uvu/assert'
import { isAppError } from '../../../src/errors.ts'
import { newId } from '../../../src/ids.ts'
import { fact, failureOf, numbers } from '../../contracts/eventStore/facts.ts'
import { openSurely } from '../../contracts/eventStore/openEventStoreDb.ts'
import { type Loss, startStandInCluster } from '../../support/eventstoredb/cluster.ts'
import { suite } from '../../support/suite.ts'
import { together } from '../../support/together.ts'
import { until } from '../../support/until.ts'
import { readersOf } from './harness.ts'
import { unhandledDuring } from '../../support/unhandled.ts'

const cluster = suite('EventStoreDB adapter: a cluster of three', { timeoutMs: 120_000 })
const clusterTogether = together(cluster)

const PATIENT = { timeoutMs: 30_000 }

/** A writer and readers of every kind get over each loss. The writer retries its event until it is acknowledged. */
const survives =
  (...losses: readonly (readonly Loss[])[]) =>
  async (): Promise<void> => {
    const unhandled = await unhandledDuring(async () => {
      const nodes = await startStandInCluster()
      const store = await openSurely(nodes.url)
      const stream = `c-${newId()}`
      const readers = readersOf(store, stream)
      const over = new AbortController()
      let count = 0
      const write = async (): Promise<void> => {
        while (!over.signal.aborted) {
          const one = fact(stream, count)
          for (;;) {
            const failure = await failureOf(store.append(stream, [one], count === 0 ? 'none' : count - 1))
            if (failure === undefined) break
            assert.ok(isAppError(failure, 'unavailable'), String(failure))
          }
          count++
          await new Promise(setImmediate)
        }
      }
      const writing = write()
      const progress = async () => {
        const before = count
        await until(() => count > before + 20, PATIENT)
        for (const seen of [readers.log, readers.own, readers.group])
          await until(() => seen().length > before, PATIENT)
      }
      await progress()
      for (const loss of losses) {
        const { leader = nodes.nodes[0] } = nodes
        const gone = [leader, ...nodes.nodes.filter((node) => node !== leader)].slice(0, loss.length)
        for (const [i, node] of gone.entries()) await nodes.lose(node, loss[i] ?? 'killed')
        if (loss.length === 1) await progress()
        for (const node of gone) await nodes.back(node)
        await progress()
      }
      over.abort()
      await writing
      for (const seen of [readers.log, readers.own, readers.group])
        await until(() => seen().length >= count, PATIENT)
      assert.equal(readers.log(), numbers(count))
      assert.equal(readers.own(), numbers(count))
      assert.equal(readers.group(), numbers(count))
      await readers.stop()
      await store.close()
      await nodes.stop()
    })
    assert.equal(unhandled, [])
  }

clusterTogether('survives a leader that is killed', survives(['killed'], ['killed']))
clusterTogether('survives a leader that is ended', survives(['ended'], ['ended']))
clusterTogether('survives a leader that is paused', survives(['paused'], ['paused']))
clusterTogether('survives the loss of two nodes', survives(['killed', 'killed'], ['paused', 'ended']))

cluster.run()
