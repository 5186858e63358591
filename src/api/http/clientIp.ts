import type { IncomingMessage } from 'node:http'
import { clientAddress, type TrustedProxies } from '../../ports/trustedProxies.ts'

/** The address of the client; empty if the connection has none. Headers count only if a trusted proxy sent them. */
export const clientIp = (
  { socket, headers }: IncomingMessage,
  { trustedProxies }: { readonly trustedProxies: TrustedProxies },
): string =>
  clientAddress(trustedProxies, {
    peer: socket.remoteAddress ?? '',
    forwarded: textOf(headers['x-forwarded-for']),
    real: textOf(headers['x-real-ip']),
  })

const textOf = (header: string | string[] | undefined): string => (header === undefined ? '' : String(header))
