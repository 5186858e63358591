import { openSecrets } from '../../src/process/secretsFile.ts'
import { readConfig, type Role } from '../../src/process/config.ts'
import { deploy, type Event } from '../support/build.ts'
import { type Cluster, startCluster } from '../support/cluster.ts'
import { disturbed, LOADED, publishUntil, settled } from '../support/endedUnderLoad.ts'
import { namedUrl } from '../support/engines.ts'
import { startStandIn } from '../support/eventstoredb/index.ts'
import { type Api, openApi } from '../support/http.ts'
import { spawnServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const CLIENTS = 8
/** FerretDB, which scans whole collections, must keep up. */
const CLUSTER_PAUSE_MS = 200
/** Events that are acknowledged between two stops. */
const LOAD = 40
/** The longest time until all runs have ended after the last stop. */
const SETTLED_MS = 120_000

/** The nodes of a cluster that stop, one after the other. Each second one is a worker, because workers have runs. */
const ROLES: readonly Role[] = ['worker', 'api', 'worker', 'saga', 'worker', 'projector']

const roleOf = (n: number): Role => ROLES[n % ROLES.length] ?? 'worker'

/** A service that can be stopped in order and continues with another process. */
export interface Stoppable {
  readonly api: Api
  /** The pause of a client between two events. */
  readonly pauseMs: number
  /** Stops a process with SIGTERM. Resolves with the name of its part and its exit code. */
  stop(n: number): Promise<readonly [part: string, code: number | NodeJS.Signals | null]>
  /** Starts the successor of the process that was stopped last. */
  restart(n: number): Promise<void>
  close(): Promise<void>
}

/** One process with embedded engines. */
export const openSingle = async (dataDir: string): Promise<Stoppable> => {
  let server = await spawnServer({ dataDir })
  const current = (): Api => server.api
  const api: Api = {
    get url() {
      return current().url
    },
    get key() {
      return current().key
    },
    send: (...args) => current().send(...args),
    get: (path) => current().get(path),
    post: (path, body) => current().post(path, body),
    patch: (path, body) => current().patch(path, body),
    remove: (path) => current().remove(path),
    page: (path) => current().page(path),
    refused: (...args) => current().refused(...args),
  }
  return {
    api,
    pauseMs: 0,
    stop: async () => ['the service', await server.end('SIGTERM')],
    async restart() {
      server = await spawnServer({ dataDir })
    },
    close: () => server.stop(),
  }
}

/** Why no cluster can be started; null if it can. */
export const clusterProblem = (): string | null =>
  namedUrl('mongodb') === null || namedUrl('s3') === null
    ? 'SVC_TEST_MONGODB and SVC_TEST_S3 are not set'
    : null

/** Two nodes of each role on the engines that `SVC_TEST_*` names, with the stand-in for an event store that is not named. */
export const openClusterOfRoles = async (): Promise<Stoppable> => {
  const standIn = namedUrl('eventStore') === null ? await startStandIn() : null
  if (standIn) process.env['SVC_TEST_STAND_IN'] = standIn.url
  const cluster: Cluster = await startCluster()
  return {
    api: openApi([cluster.url, cluster.url], openSecrets(readConfig(cluster.env)).apiKey), // a late read is repeated
    pauseMs: CLUSTER_PAUSE_MS,
    stop: async (n) => [`a node with the role ${roleOf(n)}`, await cluster.end(roleOf(n))],
    restart: (n) => cluster.add(roleOf(n)),
    async close() {
      await cluster.stop()
      await standIn?.stop()
    },
  }
}

/**
 * Stops a service under load with SIGTERM, again and again. Resolves with one line for each process that did not exit with 0,
 * and for each run that did not succeed in its first attempt: a stop in order costs no run anything (I3).
 */
export const stopAgainAndAgain = async ({
  service,
  stops,
  report,
}: {
  readonly service: Stoppable
  readonly stops: number
  readonly report: (line: string) => void
}): Promise<string[]> => {
  const { api, pauseMs } = service
  const problems: string[] = []
  const acknowledged: Event[] = []
  await deploy(api, 'work', { 'jobs.js': LOADED })
  for (let n = 0; n < stops; n++) {
    const over = new AbortController()
    const enough = acknowledged.length + LOAD
    const publishing = publishUntil({ api, clients: CLIENTS, acknowledged, pauseMs }, over.signal)
    try {
      await until(() => acknowledged.length >= enough, { timeoutMs: 60_000 })
      const [part, code] = await service.stop(n)
      if (code !== 0) problems.push(`${part} exited with ${code}`)
      report(`stop ${n + 1} of ${stops}: ${part}, ${acknowledged.length} acknowledged events`)
    } finally {
      over.abort() // while a node starts, an emulated database would fall behind
      await publishing
    }
    await service.restart(n)
  }
  await settled(api, acknowledged, SETTLED_MS)
  return [...problems, ...(await disturbed(api, acknowledged))]
}
