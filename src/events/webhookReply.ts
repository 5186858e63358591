/** The reply that the result of a webhook's run is: what can be sent is one rule for the run, its deliveries and its caller. */
import { RawJson, StoredJson } from './rawJson.ts'

/** Limits of the headers of a function: proxies refuse more. */
const MAX_HEADERS = 100
const MAX_HEADER_BYTES = 16 << 10

/** Headers about the connection, and those that only the service sets. A function may copy them from another reply. */
const OURS = new Set([
  // RFC 9110, 7.6.1 and the framing of RFC 9112
  'connection',
  'content-length',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authentication-info',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'via',
  // set by the server
  'date',
  'idempotency-replayed',
  'ratelimit',
  'ratelimit-policy',
  'removed-headers',
  'server',
  'x-request-id',
  // commands to the proxy in front
  'edge-control',
  'surrogate-control',
  'x-lighttpd-send-file',
  'x-lighttpd-send-tempfile',
])

/**
 * Commands to the proxy in front: NGINX, Apache, LiteSpeed, Perlbal, Envoy, Linkerd. With `x-envoy-immediate-health-check-fail`,
 * one reply would take the node from all tenants.
 */
const PROXY_COMMANDS = /^(?:x-(?:accel-|sendfile|litespeed-|lsadc-|reproxy-|envoy-)|l5d-)/

/** The characters of a header that Node sends. */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** Base64, unless a context variable in it was masked. */
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/

/** A result with a status of its own. Any other result is the body of a reply with 200. */
export interface Reply {
  readonly status: number
  readonly headers?: object
  readonly body?: unknown
  readonly 'body-raw'?: unknown
  readonly 'body-bytes'?: unknown
}

/** Names in lower case; values in the order of the function. */
export type ReplyHeaders = ReadonlyMap<string, string | string[]>

/** Whether a result is a reply with a status. */
export const isReply = (result: unknown): result is Reply => {
  if (typeof result !== 'object' || result === null || Array.isArray(result)) return false
  const { status, headers } = result as { status?: unknown; headers?: unknown }
  return (
    Number.isInteger(status) &&
    (status as number) >= 200 &&
    (status as number) <= 599 &&
    (headers === undefined || (typeof headers === 'object' && headers !== null && !Array.isArray(headers)))
  )
}

/** What prevents a result from being sent; undefined if it can be. Bytes in the blobs are not read. */
export const mistakeInReply = (result: unknown): string | undefined => {
  if (!isReply(result)) return undefined
  const headers = headersToSend(result.headers)
  return typeof headers === 'string' ? headers : mistakeInBytes(result['body-bytes'])
}

/** What is wrong with the bytes of a reply; undefined if they can be sent, or are not read. */
export const mistakeInBytes = (bytes: unknown): string | undefined => {
  if (bytes === undefined || bytes instanceof StoredJson) return undefined
  const text = bytes instanceof RawJson ? bytes.parse() : bytes
  if (typeof text === 'string' && BASE64.test(text)) return undefined
  return 'body: expected bytes without the value of a context variable'
}

/** The headers of a function without those that are the service's, or what is wrong with them. */
export const headersToSend = (headers: object = {}): ReplyHeaders | string => {
  if (headers instanceof StoredJson || headers instanceof RawJson) return TOO_MANY
  const entries = Object.entries(headers).map(
    ([name, value]) => [name.toLowerCase(), value as unknown] as const,
  )
  const named = tokensOf(entries.find(([name]) => name === 'connection')?.[1])
  const sent = new Map<string, string | string[]>()
  let [lines, bytes] = [0, 0]
  for (const [name, value] of entries) {
    if (named.has(name) || OURS.has(name) || PROXY_COMMANDS.test(name)) continue
    const given: readonly unknown[] = Array.isArray(value) ? value : [value]
    if (given.length === 0) continue
    if (name === 'content-type' && given.length > 1)
      return `headers: expected one value in "${name}", got ${given.length}`
    lines += given.length // each value is a line with the name
    if (lines > MAX_HEADERS) return TOO_MANY
    for (const each of given) {
      const mistake = mistakeIn(name, each)
      if (mistake !== undefined) return mistake
    }
    const values = given.map(String)
    bytes += values.reduce((sum, one) => sum + name.length + one.length, 0)
    sent.set(name, Array.isArray(value) ? values : values.join())
  }
  return bytes > MAX_HEADER_BYTES ? TOO_MANY : sent
}

const TOO_MANY = `headers: expected at most ${MAX_HEADERS} with ${MAX_HEADER_BYTES} bytes in all`

const mistakeIn = (name: string, value: unknown): string | undefined => {
  const shown = JSON.stringify(name.slice(0, 60))
  if (!HEADER_NAME.test(name)) return `headers: ${shown} is not a header that can be sent`
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean')
    return `headers: expected text in ${shown}, got ${value === null ? 'null' : typeof value}`
  if (!HEADER_VALUE.test(String(value)))
    return `headers: ${shown} has a character that no header can have, such as a line break or one beyond U+00FF; encode it`
  return undefined
}

/** Tokens that a `Connection` header names: headers about the connection too (RFC 9110, 7.6.1). */
const tokensOf = (connection: unknown): ReadonlySet<string> =>
  new Set(
    String(connection ?? '')
      .toLowerCase()
      .split(',')
      .map((token) => token.trim())
      .filter((token) => token !== ''),
  )
