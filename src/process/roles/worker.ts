import { takeOffers } from '../../cluster/offers.ts'
import type { Runtime } from '../../ports/runtime.ts'
import { Worker } from '../../worker/worker.ts'
import { loseWorkers } from '../../sagas/recovery.ts'
import type { Node } from './node.ts'

/** Claims and executes runs. */
export const startWorker = async (node: Node, runtime: Runtime): Promise<Worker> => {
  const { store, aggregates, views, payloads, keyring, quotas, logger, membership, config } = node
  const worker = new Worker(
    { store, aggregates, views, payloads, blobs: node.blobs, keyring, quotas, runtime, logger },
    {
      runTimeoutMs: config.runTimeoutMs,
      alone: membership === null,
      onIdentity: (worker_id) => membership?.join(worker_id),
    },
  )
  if (!membership) {
    // The lock on the data directory proves that every earlier worker is dead.
    await views.reach(await store.head())
    await loseWorkers(
      { aggregates, runs: views.runs, workers: views.workers, logger },
      (id) => id !== worker.worker_id,
    )
  }
  await worker.start()
  if (membership) takeOffers(worker, node.hints, { signal: node.signal, logger })
  node.onClose(() => worker.stop())
  return worker
}
