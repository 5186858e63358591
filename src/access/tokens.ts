import { randomBytes, timingSafeEqual } from 'node:crypto'
import { crc32 } from 'node:zlib'

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Formats a number as base62, left-padded with zeros. */
const base62 = (value: bigint, length: number): string => {
  let text = ''
  for (let rest = value; rest > 0n; rest /= 62n) text = DIGITS.charAt(Number(rest % 62n)) + text
  return text.padStart(length, '0')
}

export const base62Of = (bytes: Uint8Array, length: number): string =>
  base62(BigInt(`0x${Buffer.from(bytes).toString('hex')}`), length)

/** 43 digits of 256 random bits, then 6 digits of CRC-32 over the rest, so that scanners can recognize a token. */
export const newSecret = (prefix: string, bytes: Uint8Array = randomBytes(32)): string => {
  const secret = base62Of(bytes, 43)
  return secret + checksumOf(prefix + secret)
}

const checksumOf = (text: string): string => base62(BigInt(crc32(text)), 6)

export interface ApiToken {
  readonly api_key_id: string
  readonly secret: string
}

const VARIETY = 8

/** The rule of `isStrong` for messages. */
export const strongSecret = (characters: number): string =>
  `at least ${characters} characters, ${VARIETY} of them different`

/** Whether a secret of a person's choice is hard to guess. Random ones always are. */
export const isStrong = (secret: string, characters: number): boolean =>
  secret.length >= characters && new Set(secret).size >= VARIETY

const API_TOKEN = /^svc_([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})_([A-Za-z0-9]{16,128})$/

/** Parses `svc_<uuid>_<secret>` (SPEC.md, Authentication); null for anything else. */
export const parseApiToken = (token: string): ApiToken | null => {
  const [, api_key_id, secret] = API_TOKEN.exec(token) ?? []
  return api_key_id && secret ? { api_key_id, secret } : null
}

export const newApiToken = (api_key_id: string, bytes?: Uint8Array): string => {
  const prefix = `svc_${api_key_id}_`
  return prefix + newSecret(prefix, bytes)
}

export type CredentialKind = 'api-key' | 'session' | 'service-key'

export interface Token {
  readonly kind: CredentialKind
  readonly id: string
  readonly secret: string
}

const ISSUED_TOKEN =
  /^(s_|)([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})_([A-Za-z0-9]{43})([A-Za-z0-9]{6})$/

/** Parses a token of any kind (SPEC.md, Authentication); null for anything else, and for a wrong checksum. */
export const parseToken = (token: string): Token | null => {
  const api = parseApiToken(token)
  if (api) return { kind: 'api-key', id: api.api_key_id, secret: api.secret }
  const [, prefix, id = '', random = '', checksum] = ISSUED_TOKEN.exec(token) ?? []
  if (prefix === undefined || checksum !== checksumOf(`${prefix}${id}_${random}`)) return null
  return { kind: prefix === 's_' ? 'session' : 'service-key', id, secret: random + checksum }
}

/** Returns `s_<uuid>_<secret>` for a session or `<uuid>_<secret>` for a service key, and the secret separately. */
export const newIssuedToken = (kind: 'session' | 'service-key', id: string) => {
  const prefix = kind === 'session' ? `s_${id}_` : `${id}_`
  const secret = newSecret(prefix)
  return { token: prefix + secret, secret }
}

/** Whether two strings are equal, in a time that does not reveal where they differ. */
export const sameText = (a: string, b: string): boolean => {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.length === right.length && timingSafeEqual(left, right)
}
