import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'

/**
 * Whether a request is for another name than its connection was opened for. One certificate may be for one tenant only, so
 * a client that reuses a connection for another name must open its own (RFC 9110, 15.5.20).
 */
export const isMisdirected = ({ headers, socket }: IncomingMessage): boolean => {
  const { servername } = socket as TLSSocket & { readonly servername?: string | false }
  const host = (headers.host ?? '').replace(/:\d*$/, '').replace(/\.$/, '').toLowerCase()
  return typeof servername !== 'string' || host !== servername.toLowerCase()
}
