import { clock } from '../../clock.ts'
import { holdLease } from '../../cluster/lease.ts'
import { keepGoing } from '../../loops/keepGoing.ts'
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

/** Starts the sagas. Several nodes may run them, because the log accepts each step once. */
export const startSagas = async (node: Node): Promise<void> => {
  const { store, views, liveness } = node
  const { directory } = views
  const from = await node.patiently(() => store.head())
  await views.reach(from)
  const sagas: readonly Saga[] = [
    retryRuns({ ...node, from }),
    fireSchedules({ ...node, directory }),
    applyRetention({ store, directory }),
    renewRetentions(node),
    sweepFiles(node),
    sweepTenants(node),
    purgeEnvs({ ...node, from, runtime: null }), // each node sweeps its own unpacked builds
    ...(liveness ? [recoverRuns({ ...node, liveness })] : []),
  ]
  for (const saga of sagas)
    void keepGoing(`The saga ${saga.name}`, (until) => runSaga(saga, { ...node, clock }, until), node)
  startDomains(node, from)
}

/** Works on one node at a time, because a certificate authority limits the orders of a name. */
const startDomains = (node: Node, from: Parameters<typeof advanceDomains>[0]['from']): void => {
  const { config, liveness } = node
  const { domainsZone, domainRecheckMs, domainCheckMs: checkMs } = config
  const saga = advanceDomains({ ...node, from, domainsZone, domainRecheckMs, checkMs })
  const run = (until: AbortSignal) => runSaga(saga, { ...node, clock }, until)
  const alone = liveness
    ? (until: AbortSignal) => holdLease('custom domains', { ...node, liveness }, run, until)
    : run
  void keepGoing(`The saga ${saga.name}`, alone, node)
}
