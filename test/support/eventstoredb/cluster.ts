import { setTimeout as delay } from 'node:timers/promises'
import { type StandIn, startStandIn } from './index.ts'
import { Log } from './log.ts'

/** The way in which a node is lost. A paused one keeps its connections and replies to nothing. */
export type Loss = 'killed' | 'ended' | 'paused'

export interface StandInCluster {
  /** The address of all nodes. */
  readonly url: string
  /** The nodes; the first one leads at the beginning. */
  readonly nodes: readonly [StandIn, StandIn, StandIn]
  readonly leader: StandIn | undefined
  /** Resolves when the others have elected a leader, or at once when a follower is lost. */
  lose(node: StandIn, loss: Loss): Promise<void>
  /** Returns as a follower, or takes part in an election when the cluster had no quorum. */
  back(node: StandIn): Promise<void>
  stop(): Promise<void>
}

/** The time without a leader after each loss. A real cluster took 0.2 to 1.5 s, and 6.3 s after a pause. */
const ELECTION_MS: Readonly<Record<Loss, number>> = { killed: 600, ended: 900, paused: 2000 }

/** The time in which a new leader never serves the consumers that it accepts. A real one took 150 ms. */
const DEAF_MS = 300

/**
 * Three nodes that share one log, as EventStoreDB 24.6 behaves when one is lost. While a paused leader is not noticed, the
 * others name it in gossip and redirect to it. During an election they refuse calls as not ready and gossip names no
 * leader. A new leader first accepts consumers of groups that it never serves.
 */
export const startStandInCluster = async (): Promise<StandInCluster> => {
  const log = new Log()
  const nodes = [
    await startStandIn({ log }),
    await startStandIn({ log }),
    await startStandIn({ log }),
  ] as const
  const lost = new Map<StandIn, Loss>()
  let leader: StandIn | undefined = nodes[0]
  const alive = () => nodes.filter((node) => !lost.has(node))

  const follow = (node: StandIn): void => {
    node.misbehave.heal()
    if (leader && node !== leader) node.misbehave.follow(leader)
  }
  const refuse = (node: StandIn): void => {
    node.misbehave.heal()
    node.misbehave.elect()
    node.misbehave.notReady()
  }
  const elect = async (ms: number): Promise<void> => {
    leader = undefined
    const voters = alive()
    for (const node of voters) refuse(node)
    if (voters.length < 2) return
    await delay(ms)
    leader = voters[0]
    for (const node of voters) follow(node)
    leader?.misbehave.calls('consumer', 'unanswered', { times: Infinity })
    await delay(DEAF_MS)
    leader?.misbehave.heal()
  }
  for (const node of nodes) follow(node)

  return {
    url: `esdb://${nodes.map(({ port }) => `127.0.0.1:${port}`).join()}?tls=false`,
    nodes,
    get leader() {
      return leader
    },
    async lose(node, loss) {
      lost.set(node, loss)
      if (loss === 'paused') node.misbehave.silence()
      else {
        if (loss === 'ended') node.misbehave.endSubscriptions()
        await node.stop()
      }
      const led = node === leader
      if (led && loss === 'paused') await delay(ELECTION_MS.paused)
      if (led || alive().length < 2) await elect(loss === 'paused' ? ELECTION_MS.killed : ELECTION_MS[loss])
    },
    async back(node) {
      const loss = lost.get(node)
      lost.delete(node)
      if (loss !== 'paused') await node.restart()
      if (leader) follow(node)
      else await elect(ELECTION_MS.killed)
    },
    async stop() {
      for (const node of nodes) {
        node.misbehave.heal()
        await node.stop()
      }
    },
  }
}
