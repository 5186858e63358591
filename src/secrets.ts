import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto'
import { crc32 } from 'node:zlib'
import { BoundedMap } from './boundedMap.ts'

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
export const newSecret = (prefix: string, bytes: Uint8Array = randomBytes(32)): string => {
  const secret = base62Of(bytes, 43)
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

export const newApiToken = (api_key_id: string, bytes?: Uint8Array): string => {
  const prefix = `svc_${api_key_id}_`
  return prefix + newSecret(prefix, bytes)
}

/** Keys derived from the master key, one for each purpose. */
export class Keyring {
  readonly #pepper: Buffer
  readonly #webhooks: Buffer
  readonly #masterKey: Uint8Array
  readonly #envKeys = new BoundedMap<string, Buffer>(1000)

  /** `masterKey`: 32 bytes. */
  constructor(masterKey: Uint8Array) {
    this.#masterKey = masterKey
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

  /**
   * Encrypts for one environment: AES-256-GCM, a random 96-bit nonce, bound to the environment and to what
   * the text is for, so that it opens nowhere else. The first segment names the way it was sealed.
   */
  seal(env_id: string, purpose: string, text: string): string {
    const nonce = randomBytes(12)
    const cipher = createCipheriv('aes-256-gcm', this.#envKey(env_id), nonce, { authTagLength: 16 })
    cipher.setAAD(Buffer.from(`${env_id}\n${purpose}`))
    const sealed = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
    return `1.${sealed.toString('base64')}`
  }

  /** What `seal` was given. Throws when it was changed, or sealed for something else or under another master key. */
  open(env_id: string, purpose: string, sealed: string): string {
    const bytes = Buffer.from(sealed.replace(/^1\./, ''), 'base64')
    const decipher = createDecipheriv('aes-256-gcm', this.#envKey(env_id), bytes.subarray(0, 12), {
      authTagLength: 16,
    })
    decipher.setAAD(Buffer.from(`${env_id}\n${purpose}`))
    decipher.setAuthTag(bytes.subarray(-16))
    return Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()]).toString('utf8')
  }

  #envKey(env_id: string): Buffer {
    const known = this.#envKeys.get(env_id)
    if (known) return known
    const key = Buffer.from(hkdfSync('sha256', this.#masterKey, env_id, 'svc environment', 32))
    this.#envKeys.set(env_id, key)
    return key
  }

  /** The unguessable last segment of a webhook URL: derived, so it stays over redeploys and is stored nowhere (I6). */
  webhookToken(
    env_id: string,
    { method, service, path }: { method: string; service: string; path: string },
  ): string {
    const mac = createHmac('sha256', this.#webhooks)
      .update([env_id, method, service, path].join('\n'))
      .digest()
    return base62Of(mac.subarray(0, 24), 33)
  }
}

/** Whether two strings are equal, in a time that does not tell where they differ. */
export const sameText = (a: string, b: string): boolean => {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.length === right.length && timingSafeEqual(left, right)
}
