import { type Egress, openEgress } from '../../egress/openEgress.ts'
import { openResolver } from '../../egress/resolver.ts'
import type { Node } from './node.ts'

/** Connects the functions of a node with the network. `ports` are those on which the node listens. */
export const startEgress = ({ config, views, onClose }: Node, ports: readonly number[]): Egress => {
  const own = new Set(ports)
  const egress = openEgress({
    resolve: openResolver(config.dnsServers),
    allow: config.egressAllow,
    ownPorts: () => own,
    networkOf: () => null,
    orgOf: ({ env_id }) => views.directory.env(env_id)?.org_id ?? env_id,
  })
  onClose(() => egress.close())
  return egress
}
