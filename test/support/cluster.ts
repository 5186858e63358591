import { allRoles, type Role } from '../../src/process/config.ts'
import { openBalancer } from './balancer.ts'
import { namedUrl } from './engines.ts'
import { installation, realEngines } from './installation.ts'
import { type ServerProcess, spawnServer } from './server.ts'
import { tempDir } from './tempDir.ts'

export interface Cluster {
  /** The URL of the balancer in front of the API nodes. */
  readonly url: string
  /** The variables that all nodes share. */
  readonly env: Readonly<Record<string, string>>
  nodes(role: Role): readonly ServerProcess[]
  /** Kills the oldest node of a role. */
  kill(role: Role): Promise<void>
  /** Asks the oldest node of a role to stop, and resolves with its exit code. */
  end(role: Role): Promise<number | NodeJS.Signals | null>
  /** Starts another node of a role. */
  add(role: Role): Promise<void>
  stop(): Promise<void>
}

/** Variables for all nodes, or for the nth node of each role. */
export type NodeVariables =
  | Readonly<Record<string, string>>
  | ((n: number) => Readonly<Record<string, string>>)

/** Two nodes of each role on one set of engines. Each is a process with its own data directory. */
export const startCluster = async (extra: NodeVariables = {}): Promise<Cluster> => {
  const extraOf = typeof extra === 'function' ? extra : () => extra
  const added = new Map<Role, number>()
  const balancer = await openBalancer()
  const name = tempDir()
  const env = { ...realEngines(name, namedUrl), SVC_PUBLIC_URL: balancer.url, ...extraOf(0) }
  const nodes = new Map<Role, ServerProcess[]>(allRoles.map((role) => [role, []]))
  const of = (role: Role) => nodes.get(role) ?? []
  const balance = () => balancer.to(of('api').map(({ url }) => url))
  const add = async (role: Role): Promise<void> => {
    const n = added.get(role) ?? 0
    added.set(role, n + 1)
    of(role).push(await spawnServer({ env: { ...env, ...extraOf(n), SVC_ROLES: role } }))
    balance()
  }
  const end = async (role: Role, signal: NodeJS.Signals) => {
    const node = of(role).shift()
    balance()
    return (await node?.end(signal)) ?? null
  }
  await Promise.all([...allRoles, ...allRoles].map(add))
  return {
    url: balancer.url,
    env: installation(name, env),
    nodes: of,
    add,
    kill: async (role) => void (await end(role, 'SIGKILL')),
    end: (role) => end(role, 'SIGTERM'),
    async stop() {
      await Promise.all([...nodes.values()].flat().map((node) => node.stop()))
      await balancer.close()
    },
  }
}
