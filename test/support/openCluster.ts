import { openSecrets } from '../../src/process/secretsFile.ts'
import { readConfig } from '../../src/process/config.ts'
import { type Cluster, type NodeVariables, startCluster } from './cluster.ts'
import { engineUrl, reportExercised } from './engines.ts'
import { startStandIn } from './eventstoredb/index.ts'
import { type Api, openApi } from './http.ts'

export interface OpenCluster {
  readonly cluster: Cluster
  /** The API as the first key of the first environment, through the balancer. */
  readonly api: Api
  stop(): Promise<void>
}

/** Whether this machine has the engines that a cluster needs; a stand-in replaces the event store. */
export const hasClusterEngines = (): boolean => engineUrl('mongodb') !== null && engineUrl('s3') !== null

/** Starts the stand-in for the event store if no variable names a real one; null if one does. */
export const standInForEventStore = async (): Promise<Awaited<ReturnType<typeof startStandIn>> | null> => {
  engineUrl('redis') // it is exercised too
  if (engineUrl('eventStore') !== null) return null
  const standIn = await startStandIn()
  reportExercised('EventStoreDB stand-in')
  process.env['SVC_TEST_STAND_IN'] = standIn.url
  return standIn
}

/** Starts a cluster, and the stand-in for its event store if no variable names a real one. */
export const openCluster = async (extra: NodeVariables = {}): Promise<OpenCluster> => {
  const standIn = await standInForEventStore()
  try {
    const cluster = await startCluster(extra)
    return {
      cluster,
      api: openApi(cluster.url, openSecrets(readConfig(cluster.env)).apiKey),
      async stop() {
        await cluster.stop()
        await standIn?.stop()
      },
    }
  } catch (error) {
    await standIn?.stop()
    throw error
  }
}
