import { type HostPattern, hostPatternOf } from '../../egress/hosts.ts'
import { type Egress, openEgress } from '../../egress/openEgress.ts'
import { openResolver } from '../../egress/resolver.ts'
import type { Node } from './node.ts'

/** Connects the functions of a node with the network. `ports` are those on which the node listens. */
export const startEgress = ({ config, views, onClose }: Node, ports: readonly number[]): Egress => {
  const { directory } = views
  const own = new Set(ports)
  const egress = openEgress({
    resolve: openResolver(config.dnsServers),
    allow: config.egressAllow,
    ownPorts: () => own,
    networkOf: ({ env_id, project_id }) => {
      const project = directory.project(env_id, project_id)
      return project ? patternsOf(project.network) : [] // a deleted project reaches nothing
    },
  })
  onClose(directory.onChange((project_id) => egress.recheck(project_id)))
  onClose(() => egress.close())
  return egress
}

/** The directory keeps the same list until it changes, so each is parsed once. */
const parsed = new WeakMap<readonly string[], readonly HostPattern[]>()

const patternsOf = (network: readonly string[] | null): readonly HostPattern[] | null => {
  if (!network) return null
  const known = parsed.get(network)
  if (known) return known
  const patterns = network.flatMap((entry) => hostPatternOf(entry) ?? [])
  parsed.set(network, patterns)
  return patterns
}
