import { text } from 'node:stream/consumers'
import { AppError, isAppError } from '../errors.ts'
import { Turns } from '../loops/turns.ts'
import type { Blobs } from '../ports/blobs.ts'
import { type MasterKeys, wrappedBy } from './masterKeys.ts'

const FOLDER = 'keys/'
/** Replaces the environment's id in the blob's key of a root key. */
const ROOT = 'installation'
/** The folder of the root keys. */
export const ROOT_KEYS = `${FOLDER}${ROOT}/`
/** Replaces the project's id in the blob's key of an environment's own data key. */
const OF_ENV = 'env'

/** The owner of a data key: an environment, or one project of it. */
export interface Scope {
  readonly env_id: string
  readonly project_id?: string | undefined
}

/** A wrapped data key, as the key of its blob names it. */
export interface DataKeyAt {
  readonly kind: 'data'
  readonly id: string
  readonly scope: Scope
}

export type WrappedKey = { readonly kind: 'root'; readonly id: string } | DataKeyAt

export const blobOf = (key: WrappedKey): string =>
  key.kind === 'root'
    ? `${FOLDER}${ROOT}/${key.id}`
    : `${FOLDER}${key.scope.env_id}/${key.scope.project_id ?? OF_ENV}/${key.id}`

/** A key that is in the log, and that nothing destroyed. A caller that tries again gets it when it is restored. */
export class LostKey extends AppError {
  constructor(key: WrappedKey, state: 'missing' | 'damaged', cause?: unknown) {
    super(
      'unavailable',
      `The ${key.kind} key ${blobOf(key)} is ${state} in the blobs; restore it from a backup`,
      { cause },
    )
  }
}

const keyAt = (blob: string): WrappedKey | null => {
  const [env_id, project_id, id] = blob.slice(FOLDER.length).split('/')
  if (env_id === ROOT && project_id !== undefined) return { kind: 'root', id: project_id }
  if (env_id === undefined || project_id === undefined || id === undefined) return null
  return { kind: 'data', id, scope: { env_id, ...(project_id !== OF_ENV && { project_id }) } }
}

/** The binding of a wrapped key: it opens at no other place. */
const boundTo = (key: WrappedKey): Buffer =>
  Buffer.from(
    JSON.stringify(
      key.kind === 'root'
        ? ['svc root key', key.id]
        : ['svc data key', key.scope.env_id, key.scope.project_id ?? null, key.id],
    ),
  )

/** The keys in the blobs, each wrapped by a master key. Without its blob, a key does not exist in any copy of the log. */
export class WrappedKeys {
  readonly #blobs: Blobs
  readonly #masterKeys: MasterKeys
  /** The changes of a key, by blob. */
  readonly #turns = new Turns()

  constructor(blobs: Blobs, masterKeys: MasterKeys) {
    this.#blobs = blobs
    this.#masterKeys = masterKeys
  }

  /**
   * Stores a key. When it resolves, the key was wrapped with the current master key at a moment after it was stored, so
   * a rotation that begins later finds it.
   */
  async put(key: WrappedKey, bytes: Uint8Array): Promise<void> {
    let by = await this.#masterKeys.current()
    for (let wrapped = ''; wrapped !== by; by = await this.#masterKeys.current()) {
      await this.#blobs.put(blobOf(key), this.#wrap(key, by, bytes))
      wrapped = by
    }
  }

  /** Stores a key for an installation that is not founded yet, wrapped with this master key. */
  async putFirst(key: WrappedKey, by: string, bytes: Uint8Array): Promise<void> {
    await this.#blobs.put(blobOf(key), this.#wrap(key, by, bytes))
  }

  /**
   * Rejects with `not_found` when the key was removed, and with `unavailable` without its master key, or for a data key
   * that is damaged.
   */
  async get(key: WrappedKey): Promise<Buffer> {
    const wrapped = await text(await this.#blobs.get(blobOf(key)))
    try {
      if (wrappedBy(wrapped) !== '') return this.#masterKeys.unwrap(boundTo(key), wrapped)
    } catch (error) {
      if (isAppError(error) || key.kind === 'root') throw error
      throw new LostKey(key, 'damaged', error)
    }
    throw new LostKey(key, 'damaged')
  }

  /** Wraps a key with the current master key. A removal waits meanwhile, because the key would come back. */
  wrapAgain(key: WrappedKey): Promise<void> {
    return this.#turns.run(blobOf(key), async () => this.put(key, await this.get(key)))
  }

  /** After it, no `wrapAgain` of this process stores the key again. */
  remove(key: WrappedKey): Promise<void> {
    return this.#turns.run(blobOf(key), () => this.#blobs.remove(blobOf(key)))
  }

  /** Yields all keys, or the data keys of a scope; those of an environment include its projects. */
  async *list(scope?: Scope): AsyncGenerator<WrappedKey> {
    const folder = scope
      ? `${scope.env_id}/${scope.project_id === undefined ? '' : `${scope.project_id}/`}`
      : ''
    for await (const blob of this.#blobs.list(FOLDER + folder)) {
      const key = keyAt(blob.key)
      if (key) yield key
    }
  }

  /** Resolves with the id of the master key of a key; null if the key was removed. */
  async wrappedBy(key: WrappedKey): Promise<string | null> {
    try {
      return wrappedBy(await text(await this.#blobs.get(blobOf(key))))
    } catch (error) {
      if (isAppError(error, 'not_found')) return null
      throw error
    }
  }

  #wrap(key: WrappedKey, by: string, bytes: Uint8Array): Buffer {
    return Buffer.from(this.#masterKeys.wrap(by, boundTo(key), bytes))
  }
}
