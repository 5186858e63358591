import { createHmac, createSecretKey, hkdfSync, type KeyObject, timingSafeEqual } from 'node:crypto'
import { base62Of } from '../access/tokens.ts'
import { BoundedMap } from '../boundedMap.ts'
import { decrypt, encrypt } from './cipher.ts'
import type { DataKey } from './dataKeys.ts'
import { AppError } from '../errors.ts'
import type { Scope } from './wrappedKeys.ts'

/** Provides data keys; implemented by `DataKeys`. */
interface DataKeySource {
  current(scope: Scope): Promise<DataKey>
  of(scope: Scope, key_id: string): Promise<DataKey>
}

const none: DataKeySource = {
  current: () => Promise.reject(new AppError('internal_server_error', 'This keyring has no data keys')),
  of: () => Promise.reject(new AppError('internal_server_error', 'This keyring has no data keys')),
}

const derive = (rootKey: Uint8Array, salt: string, purpose: string): Buffer =>
  Buffer.from(hkdfSync('sha256', rootKey, salt, `svc ${purpose}`, 32))

/** The binding of a sealed text; JSON, so that no two bindings have the same bytes. */
const sealing = (env_id: string, project_id: string | undefined, key_id: string, purpose: string): Buffer =>
  Buffer.from(JSON.stringify(['svc sealed 2', env_id, project_id ?? null, key_id, purpose]))

/** Whether the text was sealed with the data key of this id. */
export const isSealedWith = (key_id: string, sealed: string): boolean => sealed.startsWith(`2.${key_id}.`)

/**
 * Derives keys from the root key, one for each purpose, and seals texts with data keys. The root key is stored with the
 * data keys, wrapped like them, so credentials and webhook URLs outlive the master key.
 */
export class Keyring {
  readonly #pepper: Buffer
  readonly #webhooks: Buffer
  readonly #rootKey: Uint8Array
  readonly #envKeys = new BoundedMap<string, KeyObject>(1000)
  readonly #dataKeys: DataKeySource

  /** `rootKey`: 32 bytes. Without `dataKeys`, `seal` and `unseal` reject. */
  constructor(rootKey: Uint8Array, dataKeys: DataKeySource = none) {
    this.#rootKey = rootKey
    this.#dataKeys = dataKeys
    this.#pepper = derive(rootKey, '', 'pepper')
    this.#webhooks = derive(rootKey, '', 'webhook tokens')
  }

  /** The stored form of a secret: HMAC-SHA-256 with the pepper, hex. A slow hash is not needed for 256 random bits. */
  macOf(secret: string): string {
    return createHmac('sha256', this.#pepper).update(secret).digest('hex')
  }

  /** Whether the secret has this MAC. The comparison takes constant time. */
  proves(secret: string, mac: string): boolean {
    const given = createHmac('sha256', this.#pepper).update(secret).digest()
    const stored = Buffer.from(mac, 'hex')
    return stored.length === given.length && timingSafeEqual(stored, given)
  }

  /**
   * Encrypts a text with the data key of an environment or project (AES-256-GCM). The text is bound to its owner and
   * purpose and cannot be unsealed for another. The first segment is the format, the second the id of the key.
   */
  async seal(env_id: string, purpose: string, text: string, project_id?: string): Promise<string> {
    const { id, key } = await this.#dataKeys.current({ env_id, project_id })
    const sealed = encrypt(key, sealing(env_id, project_id, id, purpose), Buffer.from(text))
    return `2.${id}.${sealed.toString('base64')}`
  }

  /**
   * Decrypts a sealed text. Rejects with `not_found` when its key was destroyed. Also rejects when the sealed text was
   * changed, or when its owner or purpose is different.
   */
  async unseal(env_id: string, purpose: string, sealed: string, project_id?: string): Promise<string> {
    const [format, ...rest] = sealed.split('.')
    if (format === '1') return this.#unsealFirst(env_id, purpose, rest[0] ?? '')
    const [id = '', text = ''] = rest
    const { key } = await this.#dataKeys.of({ env_id, project_id }, id)
    return decrypt(key, sealing(env_id, project_id, id, purpose), Buffer.from(text, 'base64')).toString(
      'utf8',
    )
  }

  /** Unseals the first format, which used a derived key before data keys existed. */
  #unsealFirst(env_id: string, purpose: string, text: string): string {
    const key = this.#envKeys.get(env_id) ?? createSecretKey(derive(this.#rootKey, env_id, 'environment'))
    this.#envKeys.set(env_id, key)
    return decrypt(key, Buffer.from(`${env_id}\n${purpose}`), Buffer.from(text, 'base64')).toString('utf8')
  }

  /** The secret last segment of a webhook URL. It is derived, so it survives redeploys and is not stored (I6). */
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
