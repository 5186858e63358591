import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import { BoundedMap } from '../boundedMap.ts'
import type { Aggregates } from '../domain/aggregates.ts'
import { bySystem } from '../events/actor.ts'
import { type Cause, envIdOf } from '../events/event.ts'
import { AppError, isAppError } from '../errors.ts'
import { streamOf } from '../events/streams.ts'
import { newId } from '../ids.ts'
import type { EventStore } from '../ports/eventStore.ts'
import { blobOf, type DataKeyAt, LostKey, type Scope, type WrappedKeys } from './wrappedKeys.ts'

export interface DataKey {
  readonly id: string
  readonly key: KeyObject
}

interface Destruction {
  readonly final: boolean
  /** Whether the keys of a `project_id` within the environment stay. */
  readonly keeps?: (project_id: string) => Promise<boolean>
}

const KNOWN = 1000

/**
 * Random AES-256 keys, one of them current for each scope. The log contains their ids. The keys are in the blobs,
 * wrapped by the master key: without its blob, no text of a key can be unsealed, in any copy of the log.
 */
export class DataKeys {
  readonly #keys: Aggregates['dataKeys']
  readonly #wrapped: WrappedKeys
  readonly #unwrapped = new BoundedMap<string, DataKey>(KNOWN)
  /** Only for environments: projects seal rarely, and must not use a key that was just destroyed. */
  readonly #current = new BoundedMap<string, DataKey>(KNOWN)
  /** Counts the rotations and destructions, so that a key whose reading began before one is not cached after it. */
  #generation = 0

  constructor({ keys, wrapped }: { keys: Aggregates['dataKeys']; wrapped: WrappedKeys }) {
    this.#keys = keys
    this.#wrapped = wrapped
  }

  /**
   * Resolves with the key for new texts and creates it if necessary. Rejects with `not_found` for a deleted project.
   */
  async current(scope: Scope): Promise<DataKey> {
    const known = scope.project_id === undefined ? this.#current.get(scope.env_id) : undefined
    if (known) return known
    for (;;) {
      const generation = this.#generation
      const current = await this.#currentId(scope)
      try {
        const key = current === null ? await this.#add(scope, null) : await this.of(scope, current)
        if (key === null) continue // that of another caller
        if (scope.project_id === undefined && generation === this.#generation)
          this.#current.set(scope.env_id, key)
        return key
      } catch (error) {
        // Destroyed in the meantime: the next text gets a new key.
        if (!isAppError(error, 'not_found') || (await this.#currentId(scope)) === current) throw error
      }
    }
  }

  /**
   * Resolves with a key by its id. Rejects with `not_found` when the key was destroyed, and with `unavailable` when it is
   * missing in the blobs although nothing destroyed it.
   */
  async of(scope: Scope, key_id: string): Promise<DataKey> {
    const wrapped = dataKeyOf(scope, key_id)
    const at = blobOf(wrapped)
    const known = this.#unwrapped.get(at)
    if (known) return known
    const generation = this.#generation
    const key = createSecretKey(await this.#unwrap(wrapped))
    if (await this.#isDestroyed(scope, key_id)) throw destroyed() // its blob is about to be removed
    if (generation === this.#generation) this.#unwrapped.set(at, { id: key_id, key })
    return { id: key_id, key }
  }

  /** Creates a new current key and resolves with its id. Older texts are unsealed with their former keys. */
  async rotate(scope: Scope, cause?: Cause): Promise<string> {
    const added = await this.#add(scope, await this.#currentId(scope), cause)
    this.#replaced(scope.env_id)
    return (added ?? (await this.current(scope))).id
  }

  /**
   * Destroys the keys of a project, or of an environment and everything in it that `keeps` does not name. After a `final`
   * destruction no text can be sealed for the scope. A repetition after a failure completes it.
   */
  async destroy(scope: Scope, { final, keeps }: Destruction, cause: Cause): Promise<void> {
    const done = new Set<string>()
    for (let scopes = [scope]; scopes.length > 0; scopes = await this.#scopesIn(scope, done)) {
      for (const each of scopes) {
        done.add(idOf(each))
        if (each.project_id !== undefined && (await keeps?.(each.project_id))) continue
        const command = { type: 'DestroyDataKeys', ...projectIn(each), final } as const
        await this.#keys.handle(streamOf.dataKeys(idOf(each)), command, cause)
      }
      this.#forget() // a text that is sealed from now on must outlive the removal
    }
    await this.removeDestroyed(scope)
  }

  /** Removes the keys of a project, or of an environment and all its projects, whose destruction is in the log. */
  async removeDestroyed(scope: Scope): Promise<void> {
    // Only the facts name the destroyed keys: one that was created before them may be in no earlier list of blobs, and
    // one that is created after them remains.
    for await (const key of this.#wrapped.list(scope))
      if (key.kind === 'data' && (await this.#isDestroyed(key.scope, key.id))) await this.#wrapped.remove(key)
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
        else this.#replaced(envIdOf(fact))
      }
    }
  }

  #currentId(scope: Scope): Promise<string | null> {
    return this.#keys.read(streamOf.dataKeys(idOf(scope)), ({ current }) => current)
  }

  /** The scopes within a scope that have keys, without those that are done. */
  async #scopesIn(scope: Scope, done: ReadonlySet<string>): Promise<Scope[]> {
    const found = new Map<string, Scope>()
    for await (const key of this.#wrapped.list(scope))
      if (key.kind === 'data' && !done.has(idOf(key.scope))) found.set(idOf(key.scope), key.scope)
    return [...found.values()]
  }

  /** Whether the log contains the destruction of a key, or its scope is closed. */
  #isDestroyed(scope: Scope, key_id: string): Promise<boolean> {
    return this.#keys.read(
      streamOf.dataKeys(idOf(scope)),
      ({ closed, destroyed }) => closed || destroyed.includes(key_id),
    )
  }

  #replaced(env_id: string): void {
    this.#generation++
    this.#current.delete(env_id)
  }

  #forget(): void {
    this.#generation++
    this.#current.clear()
    this.#unwrapped.clear()
  }

  /**
   * Adds a key that replaces `replaces`. Resolves with null if another caller was faster; its key may be destroyed already.
   * Rejects with `not_found` if the scope is closed.
   */
  async #add(scope: Scope, replaces: string | null, cause?: Cause): Promise<DataKey | null> {
    const { env_id } = scope
    const id = newId()
    const bytes = randomBytes(32)
    const wrapped = dataKeyOf(scope, id)
    await this.#wrapped.put(wrapped, bytes)
    const stream = streamOf.dataKeys(idOf(scope))
    const command = { type: 'CreateDataKey', key_id: id, ...projectIn(scope), replaces } as const
    const signed = cause ?? { env_id, correlation_id: id, ...bySystem('data-keys') }
    try {
      const { events } = await this.#keys.handle(stream, command, signed)
      if (events.length > 0) return { id, key: createSecretKey(bytes) }
    } catch (error) {
      if (isAppError(error, 'not_found')) await this.#wrapped.remove(wrapped) // the scope was closed meanwhile
      throw error
    }
    await this.#wrapped.remove(wrapped)
    return null
  }

  async #unwrap(key: DataKeyAt): Promise<Buffer> {
    try {
      return await this.#wrapped.get(key)
    } catch (error) {
      if (!isAppError(error, 'not_found')) throw error
      // The log names a destruction before it removes the key: another missing key was lost, and can be restored.
      throw (await this.#isDestroyed(key.scope, key.id))
        ? destroyed(error)
        : new LostKey(key, 'missing', error)
    }
  }
}

const destroyed = (cause?: unknown): AppError =>
  new AppError('not_found', 'The data key of this secret was destroyed', { cause })

const idOf = ({ env_id, project_id }: Scope): string => project_id ?? env_id

const projectIn = ({ project_id }: Scope) => (project_id === undefined ? {} : { project_id })

const dataKeyOf = (scope: Scope, id: string): DataKeyAt => ({ kind: 'data', id, scope })
