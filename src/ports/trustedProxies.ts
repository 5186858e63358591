import { BlockList, isIP } from 'node:net'

/**
 * The proxies in front of the service, whose `X-Forwarded-*` headers are believed: their addresses and networks, or
 * their number. A client can write such headers itself, so none is believed without this setting.
 */
export type TrustedProxies =
  | { readonly kind: 'addresses'; readonly list: BlockList }
  | { readonly kind: 'hops'; readonly hops: number }

/** No proxy is trusted: the address of a client is that of its connection. */
export const NO_PROXIES: TrustedProxies = { kind: 'hops', hops: 0 }

/** More proxies in a row are a typing error. */
const MAX_HOPS = 10

/** Parses `2` (a number of proxies) or `127.0.0.1,10.0.0.0/8,fd00::/8`. Returns undefined for anything else. */
export const parseTrustedProxies = (text: string): TrustedProxies | undefined => {
  if (/^\d+$/.test(text)) {
    const hops = Number(text)
    return hops <= MAX_HOPS ? { kind: 'hops', hops } : undefined
  }
  const list = new BlockList()
  for (const part of text.split(',')) {
    const [address = '', bits, ...rest] = part.trim().split('/')
    const version = isIP(address)
    const longest = version === 6 ? 128 : 32
    if (version === 0 || rest.length > 0 || !/^\d{1,3}$/.test(bits ?? '0') || Number(bits ?? 0) > longest)
      return undefined
    list.addSubnet(address, Number(bits ?? longest), version === 6 ? 'ipv6' : 'ipv4')
  }
  return { kind: 'addresses', list }
}

/** Returns an address in the form in which addresses are compared; null for other text. A port is dropped. */
export const addressOf = (text: string): string | null => {
  const bare = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(text)?.[1] ?? /^([\d.]+):\d{1,5}$/.exec(text)?.[1] ?? text
  const address = /^::ffff:([\d.]+)$/i.exec(bare)?.[1] ?? bare
  return isIP(address) === 0 ? null : address.toLowerCase()
}

/** Returns the network that one client usually has: its IPv4 address, or the first 64 bits of an IPv6 address. */
export const networkOf = (address: string): string => {
  if (isIP(address) !== 6) return address
  const [before = [], after = []] = address.split('::').map((part) => (part === '' ? [] : part.split(':')))
  const zeros = Array<string>(Math.max(0, 8 - before.length - after.length)).fill('0')
  const groups = [...before, ...zeros, ...after]
  return `${groups.slice(0, 4).join(':')}::/64`
}

/** Whether the peer of a connection is a trusted proxy. */
export const isTrusted = (proxies: TrustedProxies, peer: string): boolean =>
  proxies.kind === 'hops' ? proxies.hops > 0 : proxies.list.check(peer, isIP(peer) === 6 ? 'ipv6' : 'ipv4')

/**
 * Returns the address of the client. `forwarded` is `X-Forwarded-For`, counted from the right: each proxy appends the
 * address of its peer, and everything before that is the client's own text.
 */
export const clientAddress = (
  proxies: TrustedProxies,
  { peer, forwarded, real }: { peer: string; forwarded: string; real: string },
): string => {
  let client = addressOf(peer) ?? ''
  if (client === '' || !isTrusted(proxies, client)) return client
  if (forwarded === '') return addressOf(real) ?? client
  const hops = forwarded.split(',').reverse()
  const last = proxies.kind === 'hops' ? proxies.hops : hops.length
  for (const hop of hops.slice(0, last)) {
    const address = addressOf(hop.trim())
    if (address === null) return client
    client = address
    if (proxies.kind === 'addresses' && !isTrusted(proxies, client)) return client
  }
  return client
}
