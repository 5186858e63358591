import { clock } from '../../clock.ts'
import { holdLease } from '../../cluster/lease.ts'
import { keepGoing } from '../../loops/keepGoing.ts'
import { whileStarting } from '../../loops/patience.ts'
import { FunctionRates } from '../../plans/functionRates.ts'
import type { ViewName } from '../../projections/views.ts'
import { advanceDomains } from '../../sagas/advanceDomains.ts'
import { applyRetention } from '../../sagas/applyRetention.ts'
import { fireSchedules } from '../../sagas/fireSchedules.ts'
import { purgeEnvs } from '../../sagas/purgeEnvs.ts'
import { recoverRuns } from '../../sagas/recoverRuns.ts'
import { renewRetentions } from '../../sagas/renewRetentions.ts'
import { retryRuns } from '../../sagas/retryRuns.ts'
import { runSaga } from '../../sagas/runSaga.ts'
import type { Saga } from '../../sagas/saga.ts'
import { sweepFiles } from '../../sagas/sweepFiles.ts'
import { sweepTenants } from '../../sagas/sweepTenants.ts'
import type { Node } from './node.ts'

/** The read models with which sagas begin. */
const READ_BY_SAGAS = ['runs', 'workers', 'envs', 'domains'] as const satisfies ViewName[]

/**
 * Starts the sagas. Several nodes may run them, because the log accepts each step once. Each saga waits only for the read
 * models that it reads: one that is behind or stopped delays no schedule, no retry and no recovery. Resolves when a
 * node alone has caught up, which its readers wait for, and on a cluster when each saga can begin.
 */
export const startSagas = async (node: Node): Promise<void> => {
  const { store, views, liveness, limiter } = node
  const { directory } = views
  const functionRates = new FunctionRates({ limiter, directory })
  const sagas: readonly Saga[] = [
    retryRuns(node),
    fireSchedules({ ...node, directory, functionRates }),
    applyRetention({ ...node, directory }),
    renewRetentions(node),
    sweepFiles(node),
    sweepTenants(node),
    purgeEnvs({ ...node, runtime: null }), // each node sweeps its own unpacked builds
    ...(liveness ? [recoverRuns({ ...node, liveness, mayRecover: node.log.isSettled })] : []),
  ]
  for (const saga of sagas)
    void keepGoing(`The saga ${saga.name}`, (until) => runSaga(saga, { ...node, clock }, until), node)
  startDomains(node)
  const ready = liveness
    ? Promise.all(READ_BY_SAGAS.map((name) => views.completeTo(name, node.signal)))
    : views.reach(await node.patiently(() => store.head()))
  await whileStarting<unknown>(node.starting, ready)
}

/** Works on one node at a time, because a certificate authority limits the orders of a name. */
const startDomains = (node: Node): void => {
  const { config, liveness } = node
  const { domainsZone, domainRecheckMs, domainCheckMs: checkMs } = config
  const saga = advanceDomains({ ...node, domainsZone, domainRecheckMs, checkMs })
  const run = (until: AbortSignal) => runSaga(saga, { ...node, clock }, until)
  const alone = liveness
    ? (until: AbortSignal) =>
        holdLease('custom domains', { ...node, liveness, isAble: node.log.isReached }, run, until)
    : run
  void keepGoing(`The saga ${saga.name}`, alone, node)
}
