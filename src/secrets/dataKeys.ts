import { createSecretKey, hash, hkdfSync, type KeyObject, randomBytes } from 'node:crypto'
import { text } from 'node:stream/consumers'
import { BoundedMap } from '../boundedMap.ts'
import { decrypt, encrypt } from './cipher.ts'
import type { Aggregates } from '../domain/aggregates.ts'
import { type Cause, envIdOf } from '../events/event.ts'
import { AppError, isAppError } from '../errors.ts'
import { streamOf } from '../events/streams.ts'
import { newId } from '../ids.ts'
import type { Blobs } from '../ports/blobs.ts'
import type { EventStore } from '../ports/eventStore.ts'

/** The owner of a key: an environment, or one project of it. */
export interface Scope {
  readonly env_id: string
  readonly project_id?: string | undefined
}

export interface DataKey {
  readonly id: string
  readonly key: KeyObject
}

const KNOWN = 1000
/** Replaces the project's id in the blob's key of an environment's own data key. */
const OF_ENV = 'env'

/**
 * Random AES-256 keys, one of them current for each scope. The log contains their ids. The keys are in the blobs,
 * wrapped by the master key: without its blob, no text of a key can be unsealed, in any copy of the log.
 */
export class DataKeys {
  readonly #keys: Aggregates['dataKeys']
  readonly #blobs: Blobs
  readonly #wrapping: KeyObject
  /** Id of the master key, stored in each wrapped key. */
  readonly #wrappedBy: string
  readonly #unwrapped = new BoundedMap<string, DataKey>(KNOWN)
  /** Only for environments: projects seal rarely, and must not use a key that was just destroyed. */
  readonly #current = new BoundedMap<string, DataKey>(KNOWN)

  constructor({
    keys,
    blobs,
    masterKey,
  }: {
    keys: Aggregates['dataKeys']
    blobs: Blobs
    masterKey: Uint8Array
  }) {
    this.#keys = keys
    this.#blobs = blobs
    const wrapping = Buffer.from(hkdfSync('sha256', masterKey, '', 'svc data keys', 32))
    this.#wrapping = createSecretKey(wrapping)
    this.#wrappedBy = hash('sha256', Buffer.concat([Buffer.from('svc key id'), wrapping])).slice(0, 16)
  }

  /**
   * Resolves with the key for new texts and creates it if necessary. Rejects with `not_found` for a deleted project.
   */
  async current(scope: Scope): Promise<DataKey> {
    const known = scope.project_id === undefined ? this.#current.get(scope.env_id) : undefined
    if (known) return known
    const current = await this.#currentId(scope)
    const key = current === null ? await this.#add(scope, null) : await this.of(scope, current)
    if (scope.project_id === undefined) this.#current.set(scope.env_id, key)
    return key
  }

  /** Resolves with a key by its id. Rejects with `not_found` when the key was destroyed. */
  async of(scope: Scope, key_id: string): Promise<DataKey> {
    const at = blobOf(scope, key_id)
    const known = this.#unwrapped.get(at)
    if (known) return known
    const key = createSecretKey(this.#unwrap(scope, key_id, await this.#wrapped(at)))
    this.#unwrapped.set(at, { id: key_id, key })
    return { id: key_id, key }
  }

  /** Creates a new current key and resolves with its id. Older texts are unsealed with their former keys. */
  async rotate(scope: Scope, cause?: Cause): Promise<string> {
    const { id } = await this.#add(scope, await this.#currentId(scope), cause)
    this.#current.delete(scope.env_id)
    return id
  }

  /**
   * Destroys the keys of a project, or of an environment and all its projects. After a `final` destruction no text can
   * be sealed for the scope. A repetition after a failure completes it.
   */
  async destroy(scope: Scope, { final }: { final: boolean }, cause: Cause): Promise<void> {
    const { env_id, project_id } = scope
    const prefix = project_id === undefined ? `keys/${env_id}/` : `keys/${env_id}/${project_id}/`
    const blobs = await Array.fromAsync(this.#blobs.list(prefix), ({ key }) => key)
    const projects = project_id === undefined ? new Set(blobs.map(projectOf)) : new Set<string>()
    projects.delete(OF_ENV)
    const scopes: Scope[] = [scope, ...[...projects].map((id) => ({ env_id, project_id: id }))]
    for (const each of scopes) {
      // The fact is stored first, so that no key created after it is removed below.
      await this.#keys.handle(
        streamOf.dataKeys(idOf(each)),
        { type: 'DestroyDataKeys', ...projectIn(each), final },
        cause,
      )
    }
    for (const key of blobs) await this.#blobs.remove(key)
    this.#forget()
  }

  /** Drops cached keys when the log contains their replacement or destruction, by any node. */
  async watch(store: EventStore, signal: AbortSignal): Promise<void> {
    const after = await store.head()
    this.#forget()
    const types = ['DataKeyCreated', 'DataKeysDestroyed'] as const
    for await (const { events } of store.subscribe({ after, types, signal })) {
      for (const fact of events) {
        if (fact.event.type === 'DataKeysDestroyed') this.#forget()
        else this.#current.delete(envIdOf(fact))
      }
    }
  }

  #currentId(scope: Scope): Promise<string | null> {
    return this.#keys.read(streamOf.dataKeys(idOf(scope)), ({ current }) => current)
  }

  #forget(): void {
    this.#current.clear()
    this.#unwrapped.clear()
  }

  /** Adds a key that replaces `replaces`. Resolves with the key of another node if it was faster. */
  async #add(scope: Scope, replaces: string | null, cause?: Cause): Promise<DataKey> {
    const { env_id } = scope
    const id = newId()
    const bytes = randomBytes(32)
    const at = blobOf(scope, id)
    await this.#blobs.put(at, Buffer.from(this.#wrap(scope, id, bytes)))
    const stream = streamOf.dataKeys(idOf(scope))
    const { events } = await this.#keys.handle(
      stream,
      { type: 'CreateDataKey', key_id: id, ...projectIn(scope), replaces },
      cause ?? { env_id, correlation_id: id },
    )
    if (events.length > 0) return { id, key: createSecretKey(bytes) }
    await this.#blobs.remove(at)
    const current = await this.#currentId(scope)
    if (current === null) throw new AppError('conflict', 'The data keys are being destroyed')
    return this.of(scope, current)
  }

  async #wrapped(at: string): Promise<string> {
    try {
      return await text(await this.#blobs.get(at))
    } catch (error) {
      if (!isAppError(error, 'not_found')) throw error
      throw new AppError('not_found', 'The data key of this secret was destroyed', { cause: error })
    }
  }

  #wrap(scope: Scope, key_id: string, bytes: Uint8Array): string {
    return `1.${this.#wrappedBy}.${encrypt(this.#wrapping, wrapping(scope, key_id), bytes).toString('base64')}`
  }

  #unwrap(scope: Scope, key_id: string, wrapped: string): Buffer {
    const [, by, bytes = ''] = wrapped.split('.')
    if (by !== this.#wrappedBy)
      throw new AppError('internal_server_error', 'The data key was wrapped with a different SVC_MASTER_KEY')
    return decrypt(this.#wrapping, wrapping(scope, key_id), Buffer.from(bytes, 'base64'))
  }
}

const idOf = ({ env_id, project_id }: Scope): string => project_id ?? env_id

const projectIn = ({ project_id }: Scope) => (project_id === undefined ? {} : { project_id })

const blobOf = ({ env_id, project_id = OF_ENV }: Scope, key_id: string): string =>
  `keys/${env_id}/${project_id}/${key_id}`

const projectOf = (blob: string): string => blob.split('/')[2] ?? OF_ENV

/** The binding of a wrapped key. */
const wrapping = ({ env_id, project_id }: Scope, key_id: string): Buffer =>
  Buffer.from(JSON.stringify(['svc data key', env_id, project_id ?? null, key_id]))
