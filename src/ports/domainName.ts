import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'

const HOST = /^[\p{L}\p{M}\p{N}.-]+$/u
const LABEL = '[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?'
const IS_LABEL = new RegExp(`^${LABEL}$`)
const MAX_LENGTH = 253
/** A pattern for the usual names that `domainNameOf` accepts: in ASCII, with a last label of letters. */
export const DOMAIN_PATTERN = `^(${LABEL}\\.)+[A-Za-z]{1,63}$`

/**
 * Returns a host name in the form in which names are compared: lower case, international names in Punycode, no trailing
 * dot. Returns null for anything but a DNS name of at least two labels: addresses, ports, wildcards, URLs.
 */
export const domainNameOf = (text: string): string | null => {
  if (!HOST.test(text)) return null // `domainToASCII` would extract the host of a URL
  const name = domainToASCII(text).replace(/\.$/, '')
  const labels = name.split('.')
  if (name.length > MAX_LENGTH || labels.length < 2 || isIP(name) !== 0) return null
  if (/^\d+$/.test(labels.at(-1) ?? '')) return null // would be read as an address
  return labels.every((label) => IS_LABEL.test(label)) ? name : null
}

/** Zones that resolvers answer from a private network (RFC 6762, 6761, 8375, 9476, and common habit). */
const PRIVATE_ZONES = [
  'alt',
  'arpa',
  'consul',
  'corp',
  'home',
  'internal',
  'intranet',
  'invalid',
  'lan',
  'local',
  'localdomain',
  'localhost',
  'onion',
  'private',
]

/** Whether a name can be asked of the resolver without asking about a private network. */
export const isPublicName = (name: string): boolean =>
  name.includes('.') && !PRIVATE_ZONES.some((zone) => isIn(zone, name))

/** Returns whether a name is `zone` or a name below it. */
export const isIn = (zone: string, name: string): boolean => name === zone || name.endsWith(`.${zone}`)
