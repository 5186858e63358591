import { isIP, isIPv4, isIPv6 } from 'node:net'
import { counted } from '../../text/counted.ts'
import { domainNameOf } from '../../ports/domainName.ts'

export const MAX_PORT = 65_535

export const parseKey = (text: string): Buffer | undefined => {
  const key = Buffer.from(text, 'base64')
  return key.length === 32 ? key : undefined
}

/** A key that is not valid: its size may show that it is hexadecimal, or cut. */
export const keySizeOf = (text: string): string =>
  `${counted(Buffer.from(text, 'base64').length, 'byte')}, not shown`

/** The host of the public URL, if it is a DNS name. */
export const zoneOf = (publicUrl: string | null): string =>
  (publicUrl === null ? null : domainNameOf(new URL(publicUrl).hostname)) ?? 'svc.localhost'

export const parseZone = (text: string): string | undefined => domainNameOf(text) ?? undefined

export const parseServers = (text: string): readonly string[] | undefined => {
  const servers = text.split(',').map((server) => server.trim())
  return servers.every(isServer) ? servers : undefined
}

const isServer = (text: string): boolean => {
  const [, v6 = '', v4 = '', port = ''] = /^(?:\[(.+)\]|([\d.]+)):(\d{1,5})$/.exec(text) ?? []
  return isIP(text) !== 0 || ((isIPv6(v6) || isIPv4(v4)) && Number(port) <= MAX_PORT)
}

/** A host name or an address to listen on. */
export const parseHost = (text: string): string | undefined =>
  isIP(text) !== 0 || /^[A-Za-z0-9._-]+$/.test(text) ? text : undefined

export const parseUrl = (text: string): string | undefined =>
  /^https?:\/\//.test(text) && URL.canParse(text) ? text.replace(/\/+$/, '') : undefined
