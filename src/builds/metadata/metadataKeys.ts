import { nearest } from '../../sandbox/nearestName.ts'

/** Keys of metadata. Those of an object inside it are listed under its key. */
const KEYS: Readonly<Record<string, readonly string[]>> = {
  'on-event': [],
  retry: ['attempts', 'delay'],
  once: [],
  schedule: ['cron', 'timezone'],
  webhook: ['service', 'path', 'method', 'name', 'description', 'auth', 'verify', 'cors', 'agent'],
  mcp: ['service', 'description', 'input'],
  'secret-headers': [],
  timeout: [],
  context: [],
}

/** Names that other services use, and that no small change turns into the key. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  event: 'on-event',
  events: 'on-event',
  on: 'on-event',
  retries: 'retry',
  cron: 'schedule',
  secrets: 'context',
  env: 'context',
  http: 'webhook',
  'retry.backoff': 'retry.delay',
  'retry.max': 'retry.attempts',
  'retry.retries': 'retry.attempts',
  'retry.count': 'retry.attempts',
  'schedule.tz': 'schedule.timezone',
  'schedule.zone': 'schedule.timezone',
  'schedule.expression': 'schedule.cron',
  tool: 'mcp',
  'mcp.schema': 'mcp.input',
  'mcp.inputschema': 'mcp.input',
  'mcp.parameters': 'mcp.input',
  'webhook.url': 'webhook.path',
  'webhook.route': 'webhook.path',
}

/** Keys of the author, which the service does not read. */
const isOwn = (key: string): boolean => key.startsWith('x-')

type Fields = Readonly<Record<string, unknown>>

/** Returns what is wrong with the first key that the service does not know; undefined if it knows them all. */
export const unknownKeyIn = (metadata: Fields): string | undefined => {
  for (const [key, value] of Object.entries(metadata)) {
    const known = keyOf(key)
    if (known === undefined && isOwn(key)) continue
    if (known === undefined) return mistake(key, '', Object.keys(KEYS))
    const inner = KEYS[known] ?? []
    if (inner.length === 0 || typeof value !== 'object' || value === null || Array.isArray(value)) continue
    const wrong = Object.keys(value).find((each) => !inner.includes(each))
    if (wrong !== undefined) return mistake(wrong, `${known}.`, inner)
  }
  return undefined
}

/** The key as SPEC.md writes it, of one that may be in camelCase; undefined if there is none. */
export const keyOf = (key: string): string | undefined => {
  const hyphenated = /[-_]/.test(key) ? key : key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
  return Object.hasOwn(KEYS, hyphenated) ? hyphenated : undefined
}

const mistake = (key: string, under: string, known: readonly string[]): string => {
  const likely = likelyKey(key, under, known)
  const shown = `${under}${key.slice(0, 80)}`
  if (likely !== undefined) return `Expected the key ${likely}, got ${shown}`
  const all = known.map((each) => `${under}${each}`).join(', ')
  return under === ''
    ? `Expected one of the keys ${all}, or one of your own that begins with x-, got ${shown}`
    : `Expected one of the keys ${all}, got ${shown}`
}

const likelyKey = (key: string, under: string, known: readonly string[]): string | undefined => {
  const plain = plainOf(key)
  const same = known.find((each) => plainOf(each) === plain)
  const other = Object.entries(OTHER_NAMES).find(([name]) => name === `${under}${key.toLowerCase()}`)?.[1]
  const likely = same ?? nearest(key.toLowerCase(), known) ?? nearest(plain, known)
  return other ?? (likely === undefined ? undefined : `${under}${likely}`)
}

const plainOf = (key: string): string => key.replaceAll(/[-_]/g, '').toLowerCase()
