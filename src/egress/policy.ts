import { networkInterfaces } from 'node:os'
import { clock } from '../clock.ts'
import { notPublic } from './addresses.ts'
import type { Address } from './frames.ts'
import { type Host, hostOf, type HostPattern, matches } from './hosts.ts'
import { inNetworks, namesExactly, namesHost, namesPort, type OperatorAllow } from './operatorAllow.ts'
import { refusedBy } from './refusal.ts'
import type { Resolve } from './resolver.ts'

/** A target as the child names it. Without a port it is a lookup. */
export interface Target {
  readonly host: string
  readonly port: number | null
  readonly family: 0 | 4 | 6
}

export interface Asked extends Target {
  /** The allow list of the project; null: every public host. */
  readonly network: readonly HostPattern[] | null
  /** The canonical names for which this child received an address, so that `network` can contain names only. */
  readonly namesOf?: (address: string) => readonly string[]
}

/** Resolves a target once and returns the addresses to dial. Rejects with an `EgressError`. */
export type Admit = (asked: Asked) => Promise<readonly Address[]>

export interface PolicyDeps {
  readonly resolve: Resolve
  readonly allow: OperatorAllow
  /** Ports on which this process listens. */
  readonly ownPorts: () => ReadonlySet<number>
  /** Canonical addresses of this machine. */
  readonly ownAddresses?: () => ReadonlySet<string>
}

/** Addresses of one name. Checking the thousands that an answer can contain would block other work. */
const MAX_ADDRESSES = 32

/**
 * Decides which targets user code reaches. E1: the project's list contains the host as user code named it. E2: every
 * resolved address is public, or the operator allows it; one that is not refuses the whole name. E3: the caller dials
 * only the returned addresses, so a second answer of the DNS has no effect.
 */
export const openPolicy = ({
  resolve,
  allow,
  ownPorts,
  ownAddresses = addressesOfMachine(),
}: PolicyDeps): Admit => {
  /** Returns what forbids a resolved address. */
  const forbidden = (named: string, found: Address, port: number | null): string | undefined => {
    const isOwn = ownAddresses().has(found.address)
    const reason = notPublic(found) ?? (isOwn ? 'an address of this machine' : undefined)
    if (reason === undefined) return undefined
    const isService = port !== null && ownPorts().has(port) && (isOwn || isThisHost(found))
    if (isService && !namesPort(allow, named, port) && !namesPort(allow, found.address, port))
      return 'the address of this service'
    const allowed =
      namesHost(allow, named, port) || namesHost(allow, found.address, port) || inNetworks(allow, found)
    return allowed ? undefined : reason
  }

  const resolved = async (name: string, family: 0 | 4 | 6, port: number | null) => {
    const found = await resolve(name, { family, trusted: namesExactly(allow, name, port) })
    if (found.length > MAX_ADDRESSES) throw refusedBy.size(name, port, MAX_ADDRESSES)
    return canonical(found)
  }

  return async ({ host, family, ...asked }) => {
    const { port } = asked
    const target = hostOf(host)
    if (!target) throw refusedBy.spelling(host, port)
    const named = nameIn(target)
    const listed = listedOf(target, asked)
    if (listed.length === 0) throw refusedBy.network(named, port) // E1
    const addresses =
      target.kind === 'address'
        ? [{ address: target.address, family: target.family }]
        : await resolved(target.name, family, port)
    for (const found of addresses) {
      const reasons = listed.map((name) => forbidden(name, found, port))
      const [reason] = reasons.includes(undefined) ? [] : reasons
      if (reason !== undefined) throw refusedBy.address(named, port, reason) // E2
    }
    return addresses
  }
}

/** Whether the list of a project contains an open connection, which was admitted under an earlier list. */
export const isStillListed = ({ host, ...asked }: Omit<Asked, 'family'>): boolean => {
  const target = hostOf(host)
  return target !== undefined && listedOf(target, asked).length > 0
}

const nameIn = (host: Host): string => (host.kind === 'name' ? host.name : host.address)

/** The texts by which the list of a project contains a host: its own, and the names of an address. */
const listedOf = (
  host: Host,
  { port, network, namesOf }: Omit<Asked, 'host' | 'family'>,
): readonly string[] => {
  const names = host.kind === 'address' ? (namesOf?.(host.address) ?? []) : []
  return [nameIn(host), ...names].filter(
    (name) => network?.some((pattern) => matches(pattern, name, port)) ?? true,
  )
}

/** Whether the kernel delivers to this machine without an interface that has the address. */
const isThisHost = ({ address }: Address): boolean => /^(?:127|0)\.|^::1?$/.test(address)

/** Resolvers may return mapped addresses; a malformed one is dropped. */
const canonical = (addresses: readonly Address[]): readonly Address[] =>
  addresses.flatMap(({ address }) => {
    const host = hostOf(address)
    return host?.kind === 'address' ? [{ address: host.address, family: host.family }] : []
  })

/** Interfaces come and go, but reading them costs too much for every connection. */
const INTERFACES_MS = 5000

const addressesOfMachine = (): (() => ReadonlySet<string>) => {
  let known: ReadonlySet<string> = new Set()
  let readAt = Number.NEGATIVE_INFINITY
  return () => {
    const now = clock.monotonic()
    if (now - readAt < INTERFACES_MS) return known
    readAt = now
    const all = Object.values(networkInterfaces()).flatMap((each) => each ?? [])
    known = new Set(
      canonical(all.map(({ address }) => ({ address: address.replace(/%.*$/, ''), family: 4 }))).map(
        ({ address }) => address,
      ),
    )
    return known
  }
}
