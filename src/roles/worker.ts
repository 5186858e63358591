import { takeOffers } from '../cluster/offers.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { Worker } from '../runtime/worker.ts'
import { loseWorkers } from '../sagas/recovery.ts'
import { type Node, openFiles } from './node.ts'

const RUN_DRAIN_MS = 20_000
const MAX_RUNS = 2000

/** Claims and executes runs. */
export const startWorker = async (node: Node, runtime: Runtime): Promise<Worker> => {
  const { store, commands, views, payloads, keyring, quotas, log, membership, config } = node
  const worker = new Worker(
    { store, commands, views, payloads, ...openFiles(node), keyring, quotas, runtime, log },
    {
      maxRuns: MAX_RUNS,
      runTimeoutMs: config.runTimeoutMs,
      alone: membership === null,
      onIdentity: (worker_id) => membership?.join(worker_id),
    },
  )
  if (!membership) {
    // The lock on the data directory proves that every earlier worker is dead.
    await views.reach(await store.head())
    await loseWorkers(
      { commands, runs: views.runs, workers: views.workers, log },
      (id) => id !== worker.worker_id,
    )
  }
  await worker.start()
  if (membership) takeOffers(worker, node.hints, { signal: node.signal, log })
  node.onClose(() => worker.stop({ drainMs: RUN_DRAIN_MS }))
  return worker
}
