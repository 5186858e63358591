import { MASK } from '../events/mask.ts'

const UUID = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}'

/**
 * The users and passwords of URLs, without those of an example such as `<key>:<secret>`. They may contain any character, so
 * they end at the last `@` of a word; an `@` in the path of another URL does not begin with a user.
 */
function urlsWithUsers(): readonly RegExp[] {
  const WORD = '(?:(?!://)\\S)+(?=@)'
  const EXAMPLE = '<[a-z]+>:<[a-z]+>@'
  return [
    new RegExp(`((?:esdb(?:\\+discover)?|mongodb(?:\\+srv)?|rediss?|s3)://)(?!${EXAMPLE})${WORD}`, 'gi'),
    new RegExp(`(://)(?!${EXAMPLE})(?:[^\\s/:@]*:(?!\\d{1,5}/)${WORD}|[^\\s/"]+(?=@))`, 'g'),
  ]
}

/** The secrets whose form is known: tokens, webhook URLs, credentials in headers and in URLs of engines, private keys. */
const SECRETS: readonly RegExp[] = [
  new RegExp(`((?:svc_|s_|)${UUID}_)[A-Za-z0-9]{16,}`, 'gi'),
  /\b()(?=[a-z0-9]*[A-Z])(?=[A-Z0-9]*[a-z])[A-Za-z0-9]{49}\b/g, // the secret of a token; hashes are not mixed-case
  /(\/)[A-Za-z0-9]{33}(?![A-Za-z0-9])/g, // the end of a webhook URL
  /(\b(?:Bearer|Basic) +)[^\s",]+/gi,
  /(\b(?:proxy-)?authorization["']?\s*[:=]\s*["']?)(?!Bearer |Basic )[^\s"',]+/gi,
  /(\b(?:set-)?cookie["']?\s*[:=]\s*["']?)[^\r\n"']+/gi,
  ...urlsWithUsers(),
  /(-----BEGIN [A-Z ]*PRIVATE KEY-----)[^-]*/g,
]

/** Fields whose values are secrets whatever their form is, such as the value of a context variable. */
const SECRET_FIELD =
  /^(?:authorization|proxy[-_]authorization|(?:set[-_])?cookie|password|secret|token|operator[-_]?token|master[-_]?key|private[-_]?key|value|context)$/i

/** Levels and entries of a field: what is beyond is left out, because a line is for people. */
const MAX_DEPTH = 6
const MAX_ENTRIES = 1000

/** Masks the secrets whose form is known. A second net: callers do not log secrets (I6). */
export const masked = (text: string): string =>
  SECRETS.reduce((left, secret) => left.replace(secret, `$1${MASK}`), text)

/** The fields of a log line without secrets, as plain JSON. */
export const redacted = (fields: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  entriesOf(fields, 0)

const entriesOf = (fields: object, depth: number): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(fields)
      .slice(0, MAX_ENTRIES)
      .map(([name, value]) => [masked(name), isSecret(name, value) ? MASK : plain(value, depth + 1)]),
  )

const isSecret = (name: string, value: unknown): boolean =>
  value !== null && value !== undefined && SECRET_FIELD.test(name)

const plain = (value: unknown, depth: number): unknown => {
  if (typeof value === 'string') return masked(value)
  if (typeof value === 'bigint') return String(value)
  if (typeof value !== 'object' || value === null) return value
  if (depth > MAX_DEPTH) return '…'
  if (Array.isArray(value)) return value.slice(0, MAX_ENTRIES).map((each) => plain(each, depth + 1))
  if (value instanceof Error) return masked(value.stack ?? value.message)
  if (value instanceof Date) return value.toJSON()
  return entriesOf(value, depth)
}
