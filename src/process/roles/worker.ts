import { credentialNow } from '../../access/storedCredential.ts'
import { takeOffers } from '../../cluster/offers.ts'
import { isRetryable, stackOf } from '../../errors.ts'
import { demandStarting, whileStarting } from '../../loops/patience.ts'
import { FunctionRates } from '../../plans/functionRates.ts'
import type { Runtime } from '../../ports/runtime.ts'
import type { UntakenEvents } from '../../worker/untakenEvents.ts'
import { Worker } from '../../worker/worker.ts'
import { ChildEndings } from '../../commands/runs/childEndings.ts'
import { deadWorkers } from '../../commands/runs/deadWorkers.ts'
import { loseWorker } from '../../commands/runs/loseWorker.ts'
import { openIdempotency } from './idempotency.ts'
import type { Node } from './node.ts'

/** Starts a worker, which claims and executes runs. */
export const startWorker = async (
  node: Node,
  runtime: Runtime,
  untaken: Pick<UntakenEvents, 'late'>,
): Promise<Worker> => {
  const { store, aggregates, views, payloads, keyring, quotas, logger, liveness, config } = node
  let latest_id: string | undefined
  const worker = new Worker(
    {
      store,
      aggregates,
      views,
      payloads,
      blobs: node.blobs,
      keyring,
      quotas,
      idempotency: openIdempotency(node, node.signal),
      childEndings: new ChildEndings(store),
      runtime,
      logger,
      maxRunDepth: config.maxRunDepth,
      turns: node.turns,
      tracer: node.tracer,
      functionRates: new FunctionRates({ limiter: node.limiter, directory: views.directory }),
      credentialNow: (credential) => credentialNow(views, credential),
    },
    {
      runTimeoutMs: config.runTimeoutMs,
      alone: liveness === null,
      isCutOff: node.log.isCutOff,
      ...(liveness && { untaken }),
      onIdentity: (worker_id) => {
        if (latest_id !== undefined && latest_id !== worker_id) liveness?.part(latest_id)
        latest_id = worker_id
        return liveness?.join(worker_id, { unless: node.log.isCutOff })
      },
      onGivenUp: (reason) => node.onGivenUp?.(reason),
    },
  )
  if (!liveness) await node.patiently(() => loseEarlierWorkers(node))
  await node.patiently(() => worker.start(node.starting))
  if (liveness) takeOffers(worker, node.hints, { signal: node.signal, logger })
  node.onClose(() => worker.stop())
  return worker
}

/** Ends the runs of workers of earlier processes. The lock on the data directory proves that they are dead. */
const loseEarlierWorkers = async (node: Node): Promise<void> => {
  const { store, views, logger, starting } = node
  await whileStarting(starting, views.reach(await store.head(), 'runs', 'workers'))
  for await (const { worker_id, node: lost } of deadWorkers(views, () => true)) {
    demandStarting(starting)
    try {
      const { isChanged, runs_lost } = await loseWorker(node, { worker_id })
      if (isChanged) logger.warn('A worker was lost', { worker_id, node: lost, runs_lost })
    } catch (error) {
      if (isRetryable(error)) throw error
      logger.error('Some runs of a lost worker could not be ended', { worker_id, error: stackOf(error) })
    }
  }
}
