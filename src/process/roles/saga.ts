import { clock } from '../../clock.ts'
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
  const { store, views, config, liveness } = node
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
    advanceDomains({ ...node, from, domainsZone: config.domainsZone, checkMs: config.domainCheckMs }),
    ...(liveness ? [recoverRuns({ ...node, liveness })] : []),
  ]
  for (const saga of sagas)
    void keepGoing(`The saga ${saga.name}`, (until) => runSaga(saga, { ...node, clock }, until), node)
}
