import type { Socket } from 'node:net'
import type { LaneRef } from '../ports/runtime.ts'
import type { HostPattern } from './hosts.ts'
import { openPolicy, type PolicyDeps } from './policy.ts'
import { serveTunnel, type Tunnel } from './tunnel.ts'

export interface EgressDeps extends PolicyDeps {
  /** The allow list of a project at this moment; null: every public host. */
  readonly networkOf: (build: LaneRef) => readonly HostPattern[] | null
  /** Interval between looks for idle connections, which end after one to two of them. */
  readonly idleMs?: number
}

export interface Egress {
  /** Serves the connections of one child until its pipe closes. */
  readonly serve: (build: LaneRef, pipe: Socket) => Tunnel
  /** Closes the connections of a project that its list no longer contains. */
  readonly recheck: (project_id: string) => void
  readonly close: () => void
}

/** Open connections of all children of this node, and of the children of one organization. */
const MAX_CONNECTIONS = 2048
const MAX_OF_ORG = 512

/** Beyond this number, the rest is for organizations that have few connections. */
const CROWDED = MAX_CONNECTIONS * 0.75
const FEW = 64

const IDLE_MS = 300_000

/** Connects user code with public addresses, under the rules of its project (policy.ts). */
export const openEgress = ({ networkOf, idleMs = IDLE_MS, ...rules }: EgressDeps): Egress => {
  const admit = openPolicy(rules)
  const tunnels = new Map<Tunnel, LaneRef>()
  const connectionsOf = new Map<string, number>()
  let connections = 0
  const timer = setInterval(() => {
    for (const tunnel of tunnels.keys()) tunnel.closeIdle()
  }, idleMs).unref()

  return {
    serve: (build, pipe) => {
      const org = build.org_id
      const count = (more: 1 | -1) => {
        connections += more
        const now = (connectionsOf.get(org) ?? 0) + more
        if (now === 0) connectionsOf.delete(org)
        else connectionsOf.set(org, now)
      }
      const tunnel = serveTunnel(pipe, {
        admit,
        network: () => networkOf(build),
        takePlace: () => {
          const most = connections < CROWDED ? MAX_OF_ORG : FEW
          if (connections >= MAX_CONNECTIONS || (connectionsOf.get(org) ?? 0) >= most) return false
          count(1)
          return true
        },
        givePlaceBack: () => count(-1),
      })
      tunnels.set(tunnel, build)
      pipe.on('close', () => tunnels.delete(tunnel))
      return tunnel
    },
    recheck: (project_id) => {
      for (const [tunnel, build] of tunnels) if (build.project_id === project_id) tunnel.closeUnlisted()
    },
    close: () => clearInterval(timer),
  }
}
