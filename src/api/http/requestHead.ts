import type { IncomingMessage } from 'node:http'
import { AppError } from '../../errors.ts'

/** Headers that the service reads, of which a request has one: a proxy could read another one of two. */
const SINGLE = new Map(
  [
    'authorization',
    'host',
    'content-length',
    'content-range',
    'content-type',
    'expect',
    'idempotency-key',
    'if-range',
    'if-unmodified-since',
    'last-event-id',
    'proxy-authorization',
    'range',
    'x-forwarded-proto',
    'x-real-ip',
  ].map((name, index) => [name, 1 << index]),
)

/** `uri-host [":" port]` (RFC 9112, 3.2) without the characters that no host name has. */
const HOST = /^(?:[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,253})|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{0,5})?$/

/** A target that the router and a proxy read alike. `url.parse` reads a backslash as a slash if there is a `#`. */
const TARGET = /^(?:\/[^#\\]*|\*)$/

/** The scheme and host of a target in absolute form. */
const ABSOLUTE = /^https?:\/\/([^/?#\\]*)(?=[/?]|$)/i

const CHUNKED = /^chunked$/i
const CONTINUE = /^100-continue$/i

/**
 * Checks the parts of a request that a proxy and the service could read differently (RFC 9112), or that the service would
 * ignore. Throws `bad_request` that names the header. HTTP/1.0 requests need no Host.
 */
export const checkHead = ({ rawHeaders, headers, url = '', httpVersion }: IncomingMessage): void => {
  let seen = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] ?? '').toLowerCase()
    const bit = SINGLE.get(name) ?? 0
    if ((seen & bit) !== 0) throw new AppError('bad_request', `${name}: expected once, got several headers`)
    seen |= bit
  }
  const { host, expect, 'transfer-encoding': coding } = headers
  if (coding !== undefined && !CHUNKED.test(coding))
    throw new AppError('bad_request', 'transfer-encoding: expected chunked')
  if (expect !== undefined && !CONTINUE.test(expect))
    throw new AppError('bad_request', 'expect: expected 100-continue')
  if (host === undefined && httpVersion === '1.1') throw new AppError('bad_request', 'host: is required')
  if (host !== undefined && !HOST.test(host))
    throw new AppError('bad_request', 'host: expected a host name or an address, with or without a port')
  if (TARGET.test(url)) return
  const [, authority] = ABSOLUTE.exec(url) ?? []
  if (authority === undefined || url.includes('#') || url.includes('\\'))
    throw new AppError('bad_request', 'path: expected a path that begins with "/", without "#" and "\\"')
  if (authority.toLowerCase() !== host?.toLowerCase())
    throw new AppError('bad_request', 'host: expected the host of the request target')
}
