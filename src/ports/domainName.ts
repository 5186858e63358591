import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'

const HOST = /^[\p{L}\p{M}\p{N}.-]+$/u
const LABEL = '[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?'
const IS_LABEL = new RegExp(`^${LABEL}$`)
const MAX_LENGTH = 253
/** The usual ones of those that `domainNameOf` takes, as one pattern: in ASCII, the last label of letters. */
export const DOMAIN_PATTERN = `^(${LABEL}\\.)+[A-Za-z]{1,63}$`

/**
 * A host name as it is compared: lower-case, international ones in Punycode, without the dot at the end. Null for what
 * is no DNS name of at least two labels: addresses, ports, wildcards, URLs.
 */
export const domainNameOf = (text: string): string | null => {
  if (!HOST.test(text)) return null // `domainToASCII` would take the host out of a URL
  const name = domainToASCII(text).replace(/\.$/, '')
  const labels = name.split('.')
  if (name.length > MAX_LENGTH || labels.length < 2 || isIP(name) !== 0) return null
  if (/^\d+$/.test(labels.at(-1) ?? '')) return null // would be read as an address
  return labels.every((label) => IS_LABEL.test(label)) ? name : null
}

/** Whether a name is `zone` or lies in it. */
export const isIn = (zone: string, name: string): boolean => name === zone || name.endsWith(`.${zone}`)
