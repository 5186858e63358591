import { setTimeout as delay } from 'node:timers/promises'
import { allRoles, isSolo, readConfig } from '../../src/process/config.ts'
import { openBalancer } from '../support/balancer.ts'
import { isAnyNamed, namedUrl } from '../support/engines.ts'
import { type StandIn, startStandIn } from '../support/eventstoredb/index.ts'
import { installation, realEngines } from '../support/installation.ts'
import { tempDir } from '../support/tempDir.ts'
import type { Targets } from './plan.ts'
import { openSoakNode, type SoakNode } from './soakNode.ts'

/** Nodes of each role, if the engines can be shared. */
const OF_EACH_ROLE = 2
/** The longest time until a node is ready after the last fault has ended. */
const READY_MS = 60_000

export interface Fleet {
  /** The URL of the balancer in front of the API nodes. */
  readonly url: string
  /** The variables of the engines themselves, without proxies. */
  readonly env: Readonly<Record<string, string>>
  readonly nodes: readonly SoakNode[]
  readonly standIn: StandIn | null
  readonly targets: Targets
  /** Starts the nodes that are down, and waits until all are ready. */
  recover(): Promise<void>
  /** Ends all nodes in order. The engines continue. */
  stop(): Promise<void>
  close(): Promise<void>
}

/**
 * Opens nodes by role on the engines that `SVC_TEST_*` names, with the stand-in for an event store that is not named; one
 * node with embedded engines if none is named. The nodes are not started yet.
 */
export const openFleet = async ({
  variables,
  onIncident,
}: {
  readonly variables: Readonly<Record<string, string>>
  readonly onIncident: (what: string) => void
}): Promise<Fleet> => {
  const dataDir = tempDir()
  const balancer = await openBalancer()
  const standIn = isAnyNamed() && namedUrl('eventStore') === null ? await startStandIn() : null
  if (standIn) process.env['SVC_TEST_STAND_IN'] = standIn.url
  const engines = isAnyNamed() ? realEngines(dataDir, namedUrl) : {}
  const shared = { ...engines, SVC_PUBLIC_URL: balancer.url, ...variables }
  const env = installation(dataDir, shared)
  const isAlone = isSolo(readConfig(env))
  const names = isAlone
    ? ['node']
    : allRoles.flatMap((role) => Array.from({ length: OF_EACH_ROLE }, (_, n) => `${role} ${n + 1}`))
  const nodes: SoakNode[] = []
  const balance = () =>
    balancer.to(
      nodes.flatMap(({ name, url }) => (url !== null && (isAlone || name.startsWith('api')) ? [url] : [])),
    )
  for (const name of names)
    nodes.push(
      await openSoakNode({
        name,
        env: isAlone ? shared : { ...shared, SVC_ROLES: name.split(' ')[0] ?? '' },
        ...(isAlone && { dataDir }),
        onMoved: balance,
        onIncident,
      }),
    )
  return {
    url: balancer.url,
    env,
    nodes,
    standIn,
    targets: {
      nodes: names,
      engines: Object.keys(nodes[0]?.proxies ?? {}),
      standIn: standIn !== null,
    },
    async recover() {
      await Promise.all(nodes.map((node) => node.start()))
      await Promise.all(nodes.map((node) => ready(node, onIncident)))
    },
    async stop() {
      await Promise.all(nodes.map((node) => node.end('SIGTERM')))
    },
    async close() {
      for (const node of nodes) await node.close()
      await balancer.close()
      await standIn?.stop()
    },
  }
}

const ready = async ({ name, url }: SoakNode, onIncident: (what: string) => void): Promise<void> => {
  const late = AbortSignal.timeout(READY_MS)
  let reason = 'no reply'
  while (!late.aborted) {
    const reply = await fetch(`${url}/readyz`, { signal: late }).catch(() => null)
    const text = await reply?.text().catch(() => '')
    if (reply?.status === 200) return
    reason = text ?? reason
    await delay(200)
  }
  onIncident(`${name} is not ready ${READY_MS} ms after the last fault: ${reason}`)
}
