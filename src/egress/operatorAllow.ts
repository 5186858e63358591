import { BlockList, isIPv4, isIPv6 } from 'node:net'
import type { Address } from './frames.ts'
import { hostPatternOf, matches, type HostPattern } from './hosts.ts'

/** Targets that the operator allows although they are not public: networks, and hosts with or without a port. */
export interface OperatorAllow {
  readonly networks: BlockList
  readonly hosts: readonly HostPattern[]
}

export const NOTHING_ALLOWED: OperatorAllow = { networks: new BlockList(), hosts: [] }

/** Parses a list of CIDRs, hosts and `host:port`, separated by commas. Returns undefined if an entry is neither. */
export const parseOperatorAllow = (text: string): OperatorAllow | undefined => {
  const networks = new BlockList()
  const hosts: HostPattern[] = []
  for (const entry of text.split(',').map((each) => each.trim())) {
    const cidr = /^([\da-f.:]+)\/(\d{1,3})$/i.exec(entry)
    if (cidr) {
      const [, address = '', prefix = ''] = cidr
      const family = isIPv4(address) ? 'ipv4' : 'ipv6'
      if (!isIPv4(address) && !isIPv6(address)) return undefined
      if (Number(prefix) > (family === 'ipv4' ? 32 : 128)) return undefined
      networks.addSubnet(address, Number(prefix), family)
      continue
    }
    const host = hostPatternOf(entry)
    if (!host) return undefined
    hosts.push(host)
  }
  return { networks, hosts }
}

/** Whether an entry names the host, so that it may resolve to any address. */
export const namesHost = ({ hosts }: OperatorAllow, host: string, port: number | null): boolean =>
  hosts.some((pattern) => matches(pattern, host, port))

/** Whether an entry is the host itself, and no wildcard under which user code could invent names. */
export const namesExactly = ({ hosts }: OperatorAllow, host: string, port: number | null): boolean =>
  hosts.some((pattern) => !pattern.below && matches(pattern, host, port))

/** Whether an entry names the host with its port, and so means the very service that listens there. */
export const namesPort = ({ hosts }: OperatorAllow, host: string, port: number | null): boolean =>
  hosts.some((pattern) => pattern.port !== null && matches(pattern, host, port))

export const inNetworks = ({ networks }: OperatorAllow, { address, family }: Address): boolean =>
  networks.check(address, family === 4 ? 'ipv4' : 'ipv6')
