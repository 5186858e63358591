/**
 * The headers of every reply, unless a route replaces them. Replies contain tokens and data of tenants, so no cache keeps
 * them, no browser guesses their type, and no other site learns their URL.
 */
export const DEFAULT_HEADERS = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
} as const

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

/** Headers that speak for the whole origin. Only a custom domain is an origin of its own environment. */
const OF_THE_ORIGIN = new Set([
  'accept-ch',
  'alt-svc',
  'alternate-protocol',
  'attribution-reporting-register-source',
  'attribution-reporting-register-trigger',
  'authentication-info',
  'clear-site-data',
  'critical-ch',
  'expect-ct',
  'nel',
  'observe-browsing-topics',
  'origin-agent-cluster',
  'origin-trial',
  'public-key-pins',
  'public-key-pins-report-only',
  'report-to',
  'reporting-endpoints',
  'sec-session-challenge',
  'sec-session-registration',
  'secure-session-challenge',
  'secure-session-registration',
  'service-worker-allowed',
  'set-cookie',
  'set-cookie2',
  'set-login',
  'strict-transport-security',
  'use-as-dictionary',
  'www-authenticate',
  'x-permitted-cross-domain-policies',
])

/** Whether the service replaces or removes a header of a function everywhere; `name` is in lower case. */
export const isOfService = (name: string): boolean => OURS.has(name) || PROXY_COMMANDS.test(name)

/** Whether a header of a function is for the whole origin; `name` is in lower case. */
export const isOfOrigin = (name: string): boolean => OF_THE_ORIGIN.has(name)

/** Names the headers for the origin that a function set in vain: their loss would be found only in a browser. */
export const REMOVED_HEADERS = 'Removed-Headers'

/** Tokens that a `Connection` header names: headers about the connection too (RFC 9110, 7.6.1). */
export const namedInConnection = (connection: unknown): ReadonlySet<string> =>
  new Set(
    String(connection ?? '')
      .toLowerCase()
      .split(',')
      .map((token) => token.trim()),
  )
