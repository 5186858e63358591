import * as assert from 'uvu/assert'
import { openEventStore } from '../../src/adapters/embedded/eventStore/index.ts'
import { openReadModels } from '../../src/adapters/embedded/readModels/index.ts'
import { Liveness } from '../../src/cluster/liveness.ts'
import { PermanentError } from '../../src/errors.ts'
import { newId } from '../../src/ids.ts'
import { silent } from '../../src/logger.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import type { ReadModels } from '../../src/ports/readModels.ts'
import { startProjecting } from '../../src/process/roles/projector.ts'
import { facts } from '../contracts/eventStore/facts.ts'
import { forwarding } from '../support/forwarding.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

interface Context {
  store: EventStore
  readModels: ReadModels
}

const givenUp = suite<Context>('a projecting node whose loops stay stopped', { timeoutMs: 60_000 })
givenUp.before.each((context) => {
  context.store = openEventStore({ dir: tempDir() })
  context.readModels = openReadModels({ dir: tempDir() })
})
givenUp.after.each(async ({ store, readModels }) => {
  await readModels.close()
  await store.close()
})

/** A projecting node. From `break` to `mend`, its readers of the log stop for good at the next fact. */
const openNode = ({ store, readModels }: Context) => {
  const ending = new AbortController()
  const { signal } = ending
  const liveness = new Liveness(readModels)
  const node_id = newId()
  void liveness.join(node_id)
  const beats = liveness.run(signal).catch(() => {}) // the read models close after a test that fails
  const reasons: string[] = []
  let isBroken = false
  const breaking = forwarding(store, {
    async *subscribe(options) {
      for await (const batch of store.subscribe(options)) {
        if (isBroken) throw new PermanentError('internal_server_error', 'This node is broken')
        yield batch
      }
    },
  })
  const { progress, projectors } = startProjecting(
    {
      store: breaking,
      readModels,
      liveness,
      node_id,
      signal,
      logger: silent,
      hints: { connected: false, publish: () => {}, on: () => () => {}, close: async () => {} },
      log: { isReached: () => true },
      onGivenUp: (reason) => reasons.push(reason),
    },
    true,
  )
  return {
    reasons,
    progress,
    names: projectors?.names ?? [],
    works: async () => ((await projectors?.lags()) ?? []).length > 0,
    break: () => void (isBroken = true),
    mend: () => void (isBroken = false),
    async stop() {
      ending.abort()
      await beats
    },
  }
}

givenUp('leaves its work to another one', async (context) => {
  const first = openNode(context)
  await until(first.works)
  const second = openNode(context)
  first.break()
  const { cursor } = await context.store.append('s', facts('s', 1), 'none')
  await until(second.works)
  for (const name of second.names) await second.progress.reach(name, cursor)
  assert.not(await first.works())
  await first.stop()
  await second.stop()
})

givenUp('continues if there is no other one', async (context) => {
  const node = openNode(context)
  await until(node.works)
  node.break()
  await context.store.append('s', facts('s', 1), 'none')
  await until(() => node.reasons.length > 0)
  await until(async () => !(await node.works()))
  node.mend()
  await until(node.works)
  await node.stop()
})

givenUp.run()
