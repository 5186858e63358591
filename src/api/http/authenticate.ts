import { BoundedMap } from '../../boundedMap.ts'
import { START } from '../../events/event.ts'
import type { EventStore } from '../../ports/eventStore.ts'
import type { Collection } from '../../ports/readModels.ts'
import { compilePermissions, type PermissionSet } from '../../permissions.ts'
import type { ApiKeyDoc } from '../../projections/tenants.ts'
import type { Views } from '../../projections/views.ts'
import { type Keyring, parseApiToken, sameText } from '../../secrets.ts'
import { bearerOf, unauthorized } from './bearer.ts'

/** Who asks: a valid credential of one environment. */
export interface Credential {
  readonly kind: 'api-key'
  readonly id: string
  readonly env_id: string
  readonly permissions: PermissionSet
}

interface Known {
  readonly mac: string
  readonly credential: Credential
  /** The token that proved itself: the same one again needs no hashing. */
  proven?: string
}

const KNOWN = 10_000
/** Compared with when the id is unknown, so that an unknown id takes as long as a wrong secret. */
const NO_MAC = '0'.repeat(64)

/** Tells who a bearer token stands for (SPEC.md, Authentication). */
export class Authenticator {
  readonly #apiKeys: Collection<ApiKeyDoc>
  readonly #settled: () => Promise<void>
  readonly #keyring: Keyring
  readonly #known = new BoundedMap<string, Known>(KNOWN)

  constructor({ views, keyring }: { views: Pick<Views, 'apiKeys' | 'settled'>; keyring: Keyring }) {
    this.#apiKeys = views.apiKeys
    this.#settled = () => views.settled('api_keys')
    this.#keyring = keyring
  }

  /** Rejects with `unauthorized`, always the same, for whatever is wrong with the header. */
  async authenticate(authorization: string | undefined): Promise<Credential> {
    const token = bearerOf(authorization)
    const parsed = token === undefined ? null : parseApiToken(token)
    if (!parsed) throw unauthorized()
    const known = this.#known.get(parsed.api_key_id) ?? (await this.#load(parsed.api_key_id))
    if (known?.proven !== undefined && sameText(known.proven, parsed.secret)) return known.credential
    if (!this.#keyring.proves(parsed.secret, known?.mac ?? NO_MAC) || !known) throw unauthorized()
    known.proven = parsed.secret
    return known.credential
  }

  /** Forgets a key as soon as the log says that it changed. */
  async watch(store: EventStore, signal: AbortSignal): Promise<void> {
    const after = (await store.head()) || START
    for await (const { events } of store.subscribe({
      after,
      types: ['ApiKeyChanged', 'ApiKeyDeleted'],
      signal,
    })) {
      for (const { event } of events) if ('api_key_id' in event) this.changed(event.api_key_id)
    }
  }

  /** Forgets the key: the next request reads it again. */
  changed(api_key_id: string): void {
    this.#known.delete(api_key_id)
  }

  async #load(api_key_id: string): Promise<Known | undefined> {
    await this.#settled()
    const doc = await this.#apiKeys.get(api_key_id)
    if (!doc?.enabled) return undefined
    const { env_id, mac, permissions } = doc
    const credential = {
      kind: 'api-key',
      id: api_key_id,
      env_id,
      permissions: compilePermissions(permissions),
    } as const
    const known: Known = { mac, credential }
    this.#known.set(api_key_id, known)
    return known
  }
}
