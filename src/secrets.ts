import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto'
import { crc32 } from 'node:zlib'

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** A number as base62, left-padded with zeros. */
const base62 = (value: bigint, length: number): string => {
  let text = ''
  for (let rest = value; rest > 0n; rest /= 62n) text = DIGITS.charAt(Number(rest % 62n)) + text
  return text.padStart(length, '0')
}

const base62Of = (bytes: Uint8Array, length: number): string =>
  base62(BigInt(`0x${Buffer.from(bytes).toString('hex')}`), length)

/** 43 digits of 256 random bits and 6 digits of CRC-32 over all before them, so a scanner can tell a real one. */
export const newSecret = (prefix: string): string => {
  const secret = base62Of(randomBytes(32), 43)
  return secret + base62(BigInt(crc32(prefix + secret)), 6)
}

export interface ApiToken {
  readonly api_key_id: string
  readonly secret: string
}

const API_TOKEN = /^svc_([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})_([A-Za-z0-9]{16,128})$/

/** `svc_<uuid>_<secret>` (SPEC.md, Authentication); null for anything else. */
export const parseApiToken = (token: string): ApiToken | null => {
  const [, api_key_id, secret] = API_TOKEN.exec(token) ?? []
  return api_key_id && secret ? { api_key_id, secret } : null
}

export const newApiToken = (api_key_id: string): string => {
  const prefix = `svc_${api_key_id}_`
  return prefix + newSecret(prefix)
}

/** Keys derived from the master key, one for each purpose. */
export class Keyring {
  readonly #pepper: Buffer
  readonly #webhooks: Buffer

  /** `masterKey`: 32 bytes. */
  constructor(masterKey: Uint8Array) {
    const derive = (purpose: string) => Buffer.from(hkdfSync('sha256', masterKey, '', `svc ${purpose}`, 32))
    this.#pepper = derive('pepper')
    this.#webhooks = derive('webhook tokens')
  }

  /** What is stored of a secret: HMAC-SHA-256 under the pepper, hex. The secret has 256 bits, so a slow hash adds nothing. */
  macOf(secret: string): string {
    return createHmac('sha256', this.#pepper).update(secret).digest('hex')
  }

  /** Constant in time for any mac. */
  proves(secret: string, mac: string): boolean {
    const given = createHmac('sha256', this.#pepper).update(secret).digest()
    const stored = Buffer.from(mac, 'hex')
    return stored.length === given.length && timingSafeEqual(stored, given)
  }

  /** The unguessable last segment of a webhook URL: derived, so it stays over redeploys and is stored nowhere (I6). */
  webhookToken(env_id: string, { method, service, path }: { method: string; service: string; path: string }): string {
    const mac = createHmac('sha256', this.#webhooks).update([env_id, method, service, path].join('\n')).digest()
    return base62Of(mac.subarray(0, 24), 33)
  }
}

/** Whether two strings are equal, in a time that does not tell where they differ. */
export const sameText = (a: string, b: string): boolean => {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.length === right.length && timingSafeEqual(left, right)
}
