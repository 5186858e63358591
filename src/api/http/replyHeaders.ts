/**
 * The headers of every reply, unless a route replaces them. Replies contain tokens and data of tenants, so no cache keeps
 * them, no browser guesses their type, and no other site learns their URL.
 */
export const DEFAULT_HEADERS = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
} as const

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

/** Whether a header of a function is for the whole origin; `name` is in lower case. */
export const isOfOrigin = (name: string): boolean => OF_THE_ORIGIN.has(name)

/** Names the headers for the origin that a function set in vain: their loss would be found only in a browser. */
export const REMOVED_HEADERS = 'Removed-Headers'
