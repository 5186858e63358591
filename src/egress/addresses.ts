import { BlockList } from 'node:net'
import type { Address } from './frames.ts'

type Ranges = readonly (readonly [string, number, string])[]

/** Ranges of IPv4 that are not public (IANA special-purpose registry), and addresses of clouds' own services. */
const NOT_PUBLIC_4: Ranges = [
  ['0.0.0.0', 8, 'an address of this host'],
  ['10.0.0.0', 8, 'a private address'],
  ['100.64.0.0', 10, 'an address of a provider network'],
  ['127.0.0.0', 8, 'a loopback address'],
  ['168.63.129.16', 32, 'a metadata address'],
  ['169.254.0.0', 16, 'a link-local or metadata address'],
  ['172.16.0.0', 12, 'a private address'],
  ['192.0.0.0', 24, 'a reserved address'],
  ['192.0.2.0', 24, 'a documentation address'],
  ['192.31.196.0', 24, 'a reserved address'],
  ['192.52.193.0', 24, 'a reserved address'],
  ['192.88.99.0', 24, 'a relay address'],
  ['192.168.0.0', 16, 'a private address'],
  ['192.175.48.0', 24, 'a reserved address'],
  ['198.18.0.0', 15, 'a benchmark address'],
  ['198.51.100.0', 24, 'a documentation address'],
  ['203.0.113.0', 24, 'a documentation address'],
  ['224.0.0.0', 4, 'a multicast address'],
  ['240.0.0.0', 4, 'a reserved or broadcast address'],
]

/** Only global unicast can be public in IPv6. Mapped, compatible, NAT64, unique local and other forms are outside. */
const GLOBAL_6: readonly [string, number] = ['2000::', 3]

/** Ranges of IPv6 outside global unicast, for the message, and those inside that are not public. */
const NOT_PUBLIC_6: Ranges = [
  ['::1', 128, 'a loopback address'],
  ['::', 96, 'an address of this host or an IPv4-compatible address'],
  ['64:ff9b::', 16, 'a translated (NAT64) address'],
  ['fc00::', 7, 'a private (unique local) address'],
  ['fe80::', 10, 'a link-local address'],
  ['fec0::', 10, 'a private (site-local) address'],
  ['ff00::', 8, 'a multicast address'],
  ['2001::', 23, 'a reserved or tunnelled (Teredo) address'],
  ['2001:db8::', 32, 'a documentation address'],
  ['2002::', 16, 'a tunnelled (6to4) address'],
  ['2620:4f:8000::', 48, 'a reserved address'],
  ['3fff::', 20, 'a documentation address'],
]

/** Finds the reason of an address. A public address, the usual case, costs one check. */
const reasonIn = (family: 'ipv4' | 'ipv6', ranges: Ranges): ((address: string) => string | undefined) => {
  const all = new BlockList()
  const each = ranges.map(([address, prefix, reason]) => {
    const list = new BlockList()
    list.addSubnet(address, prefix, family)
    all.addSubnet(address, prefix, family)
    return { list, reason }
  })
  return (address) =>
    all.check(address, family) ? each.find(({ list }) => list.check(address, family))?.reason : undefined
}

const reasonIn4 = reasonIn('ipv4', NOT_PUBLIC_4)
const reasonIn6 = reasonIn('ipv6', NOT_PUBLIC_6)
const global6 = new BlockList()
global6.addSubnet(...GLOBAL_6, 'ipv6')

/** Returns what a canonical address is instead of public; undefined if it is public. */
export const notPublic = ({ address, family }: Address): string | undefined => {
  if (family === 4) return reasonIn4(address)
  return reasonIn6(address) ?? (global6.check(address, 'ipv6') ? undefined : 'a reserved address')
}
