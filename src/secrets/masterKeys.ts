import { createSecretKey, hash, hkdfSync, type KeyObject, randomBytes } from 'node:crypto'
import { AppError } from '../errors.ts'
import { decrypt, encrypt } from './cipher.ts'

/** Stores the master key of an installation without `SVC_MASTER_KEY`. */
export interface MasterKeyFile {
  /** Makes a key the master key and keeps the current one beside it. Durable when it returns. */
  replaceMasterKey(next: Uint8Array, isCurrent: (key: Uint8Array) => boolean): void
  /** Removes the former master key if it is retired. Durable when it returns. */
  dropPreviousMasterKey(isRetired: (key: Uint8Array) => boolean): void
}

/** A master key of this process. */
interface MasterKey {
  /** Stored in each key that it wraps. */
  readonly id: string
  readonly wrapping: KeyObject
}

const masterKeyOf = (bytes: Uint8Array): MasterKey => {
  const wrapping = Buffer.from(hkdfSync('sha256', bytes, '', 'svc data keys', 32))
  const id = hash('sha256', Buffer.concat([Buffer.from('svc key id'), wrapping])).slice(0, 16)
  return { id, wrapping: createSecretKey(wrapping) }
}

export const masterKeyIdOf = (bytes: Uint8Array): string => masterKeyOf(bytes).id

/** Returns the id of the master key that wrapped a key. */
export const wrappedBy = (wrapped: string): string => wrapped.split('.')[1] ?? ''

/**
 * The master keys that this process has: the configured one and, during a rotation, the one that it replaces. The log
 * decides which of them wraps new keys, so that all nodes change at the same moment.
 */
export class MasterKeys {
  readonly #keys = new Map<string, MasterKey>()
  readonly #currentId: () => Promise<string>
  /** Id of the configured key. A rotation has not reached it while another one is current. */
  #configured: string

  /** `currentId` reads the log; by default, the first key is current. */
  constructor([first, ...others]: readonly [Uint8Array, ...Uint8Array[]], currentId?: () => Promise<string>) {
    this.#configured = ''
    for (const bytes of others) this.add(bytes)
    this.add(first)
    this.#currentId = currentId ?? (() => Promise.resolve(this.#configured))
  }

  get configured(): string {
    return this.#configured
  }

  has(id: string): boolean {
    return this.#keys.has(id)
  }

  /** Adds a key as the configured one. */
  add(bytes: Uint8Array): void {
    const key = masterKeyOf(bytes)
    this.#keys.set(key.id, key)
    this.#configured = key.id
  }

  /** Forgets a key that wraps nothing any more. */
  drop(id: string): void {
    if (id !== this.#configured) this.#keys.delete(id)
  }

  /** Returns a random text that only this key opens. */
  canaryOf(id: string): string {
    return encrypt(this.#of(id).wrapping, canary(id), randomBytes(32)).toString('base64')
  }

  opens(id: string, sealed: string): boolean {
    try {
      decrypt(this.#of(id).wrapping, canary(id), Buffer.from(sealed, 'base64'))
      return true
    } catch {
      return false
    }
  }

  /** Resolves with the id of the key that wraps new keys. */
  current(): Promise<string> {
    return this.#currentId()
  }

  /** Encrypts a key with the master key of the id. `unwrap` requires the same `bound`. */
  wrap(id: string, bound: Buffer, bytes: Uint8Array): string {
    return `1.${id}.${encrypt(this.#of(id).wrapping, bound, bytes).toString('base64')}`
  }

  /** Decrypts a wrapped key. Rejects with `unavailable` when this process lacks the master key. */
  unwrap(bound: Buffer, wrapped: string): Buffer {
    const [, by = '', bytes = ''] = wrapped.split('.')
    return decrypt(this.#of(by).wrapping, bound, Buffer.from(bytes, 'base64'))
  }

  #of(id: string): MasterKey {
    const key = this.#keys.get(id)
    if (key) return key
    throw new AppError(
      'unavailable',
      `SVC_MASTER_KEY: this node lacks the master key ${id}; restart it with this key, or with this key as ` +
        'SVC_MASTER_KEY_PREVIOUS if it was replaced',
    )
  }
}

const canary = (id: string): Buffer => Buffer.from(JSON.stringify(['svc canary', id]))
