import { isIPv4, isIPv6 } from 'node:net'
import { domainToASCII } from 'node:url'

/** A host in the one form in which hosts are compared. */
export type Host =
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'address'; readonly address: string; readonly family: 4 | 6 }

const MAX_NAME = 253
const CHARACTERS = /^[\p{L}\p{M}\p{N}._-]+$/u
const LABEL = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/

/** Matches a last label that a resolver may read as a part of an IPv4 address: `1`, `017`, `0x7f`. */
const NUMBER = /^(\d+|0x[\da-f]*)$/

/**
 * Returns a host in its canonical form: names in lower case and Punycode without a trailing dot, IPv6 addresses
 * compressed, IPv4-mapped ones as IPv4. Returns undefined for other spellings of addresses (octal, hexadecimal, fewer
 * parts, zone ids), because resolvers disagree about their meaning.
 */
export const hostOf = (text: string): Host | undefined => {
  const bare = text.startsWith('[') && text.endsWith(']') ? text.slice(1, -1) : text
  if (isIPv4(bare)) return { kind: 'address', address: bare, family: 4 }
  if (bare.includes(':')) return isIPv6(bare) && !bare.includes('%') ? ipv6Of(bare) : undefined
  if (bare !== text || !CHARACTERS.test(text)) return undefined
  const name = domainToASCII(text).toLowerCase().replace(/\.$/, '')
  const labels = name.split('.')
  if (name.length > MAX_NAME || NUMBER.test(labels.at(-1) ?? '')) return undefined
  return labels.every((label) => LABEL.test(label)) ? { kind: 'name', name } : undefined
}

const ipv6Of = (text: string): Host => {
  const address = new URL(`http://[${text}]`).hostname.slice(1, -1)
  const mapped = /^::ffff:([\da-f]+):([\da-f]+)$/.exec(address)
  if (!mapped) return { kind: 'address', address, family: 6 }
  const bytes = [mapped[1], mapped[2]].flatMap((part) => {
    const number = Number.parseInt(part ?? '', 16)
    return [number >> 8, number & 255]
  })
  return { kind: 'address', address: bytes.join('.'), family: 4 }
}

/** An entry of an allow list: a name, the names below a zone, or an address; with one port or all. */
export interface HostPattern {
  /** The canonical name or address; with `below`, the zone. */
  readonly host: string
  /** True for `*.zone`: every name below the zone, but not the zone itself. */
  readonly below: boolean
  readonly port: number | null
}

const WITH_PORT = /^(\[[^\]]*\]|[^:]+)(?::(\d{1,5}))?$/

/** Parses `host`, `*.zone`, an address, or one of these with `:port`. IPv6 addresses with a port have brackets. */
export const hostPatternOf = (text: string): HostPattern | undefined => {
  const whole = isIPv6(text) ? [text, text] : WITH_PORT.exec(text)
  if (!whole) return undefined
  const port = whole[2] === undefined ? null : Number(whole[2])
  if (port !== null && (port < 1 || port > 65_535)) return undefined
  const written = whole[1] ?? ''
  const below = written.startsWith('*.')
  const host = hostOf(below ? written.slice(2) : written)
  if (!host || (below && host.kind === 'address')) return undefined
  return { host: host.kind === 'name' ? host.name : host.address, below, port }
}

export const textOfPattern = ({ host, below, port }: HostPattern): string => {
  const written = host.includes(':') && port !== null ? `[${host}]` : host
  return `${below ? '*.' : ''}${written}${port === null ? '' : `:${port}`}`
}

/** Returns whether a pattern contains a canonical host. Without a port, as in a lookup, any port will do. */
export const matches = (pattern: HostPattern, host: string, port: number | null): boolean => {
  if (pattern.port !== null && port !== null && pattern.port !== port) return false
  return pattern.below ? host.endsWith(`.${pattern.host}`) : host === pattern.host
}
