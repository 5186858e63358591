import { isIP, SocketAddress } from 'node:net'
import { domainNameOf } from '../../ports/domainName.ts'

export const parseKey = (text: string): Buffer | undefined => {
  const key = Buffer.from(text, 'base64')
  return key.length === 32 ? key : undefined
}

/** The host of the public URL, if it is a DNS name. */
export const zoneOf = (publicUrl: string | null): string =>
  (publicUrl === null ? null : domainNameOf(new URL(publicUrl).hostname)) ?? 'svc.localhost'

export const parseZone = (text: string): string | undefined => domainNameOf(text) ?? undefined

export const parseServers = (text: string): readonly string[] | undefined => {
  const servers = text.split(',').map((server) => server.trim())
  const isServer = (server: string) => isIP(server) !== 0 || SocketAddress.parse(server) !== undefined
  return servers.every(isServer) ? servers : undefined
}

export const parseUrl = (text: string): string | undefined =>
  /^https?:\/\//.test(text) && URL.canParse(text) ? text.replace(/\/+$/, '') : undefined
