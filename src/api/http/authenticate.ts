import { BoundedMap } from '../../boundedMap.ts'
import { clock } from '../../clock.ts'
import type { Aggregates } from '../../domain/aggregates.ts'
import { AppError } from '../../errors.ts'
import type { Cursor } from '../../events/event.ts'
import type { DomainEvent, EventType } from '../../events/index.ts'
import { streamOf } from '../../events/streams.ts'
import type { EventStore } from '../../ports/eventStore.ts'
import type { Hints } from '../../ports/hints.ts'
import { bothAllow, compilePermissions } from '../../access/permissions.ts'
import type { Views } from '../../projections/views.ts'
import { Waiters } from '../../projections/waiters.ts'
import { type CredentialKind, parseToken, sameText } from '../../access/tokens.ts'
import { type Keyring } from '../../secrets/keyring.ts'
import { bearerOf, unauthorized } from './bearer.ts'
import type { Credential } from './credential.ts'
import { OpenReplies, type OpenReply } from './openReplies.ts'

interface Known {
  readonly mac: string
  readonly credential: Credential
  /** Of what was issued: the API key, as it was when this was loaded. */
  readonly parent: Known | null
  /** The token that proved itself: the same one again needs no hashing. */
  proven?: string
  /** When its use was last told, by the monotonic clock. */
  used: number
}

interface Deps {
  readonly store: EventStore
  readonly views: Pick<Views, 'apiKeys' | 'sessions' | 'serviceKeys' | 'settled'>
  readonly aggregates: Pick<Aggregates, 'issued'>
  readonly hints: Pick<Hints, 'publish' | 'on'>
  readonly keyring: Keyring
}

const KNOWN = 10_000
/** Compared with when the id is unknown, so that an unknown id takes as long as a wrong secret. */
const NO_MAC = '0'.repeat(64)
/** What is known is trusted for this long after the log was last seen to its end. */
const TRUST_MS = 1000
/** How long a request waits for the log to be in sight again. */
const TOUCH_MS = 5000
/** A service key's use is told this often at most. */
const USED_MS = 60_000

const WATCHED: readonly EventType[] = [
  'ApiKeyChanged',
  'ApiKeyDeleted',
  'SessionsEnded',
  'ServiceKeysRevoked',
]

const READ = { 'api-key': [], session: ['sessions'], 'service-key': ['serviceKeys'] } as const

/**
 * Tells who a bearer token stands for (SPEC.md, Authentication).
 *
 * A1: what ends a credential is a fact, and every node follows these facts: what it knows of a credential goes when one
 * comes, and is not believed when the log was out of sight for a second.
 * A2: who is not known is looked up in read models that hold all there was when the request came.
 * A3: what was issued under an API key holds while that is enabled, and allows what both allow.
 * A4: a stream that is open ends when its credential would no longer be given it.
 */
export class Authenticator {
  readonly #deps: Deps
  readonly #known = new BoundedMap<string, Known>(KNOWN)
  readonly #open = new OpenReplies()
  readonly #waiting = new Waiters()
  #position: Cursor | undefined
  #trustedUntil = -Infinity
  #asking: Promise<void> | undefined
  /** Counts what ended credentials: what was being loaded meanwhile may be out of date. */
  #endings = 0

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Rejects with `unauthorized`, always the same, for whatever is wrong with the header. */
  async authenticate(authorization: string | undefined): Promise<Credential> {
    const token = bearerOf(authorization)
    const parsed = token === undefined ? null : parseToken(token)
    if (!parsed) throw unauthorized()
    if (clock.monotonic() > this.#trustedUntil) await this.#inTouch()
    const { kind, id, secret } = parsed
    const known = this.#current(kind, id) ?? (await this.#load(kind, id))
    if (known?.proven === undefined || !sameText(known.proven, secret)) {
      if (!this.#deps.keyring.proves(secret, known?.mac ?? NO_MAC) || !known) throw unauthorized()
      known.proven = secret
    }
    const { credential } = known
    if (credential.expires <= clock.now()) throw unauthorized()
    if (kind === 'service-key' && clock.monotonic() - known.used > USED_MS) this.#tellUse(known)
    return credential
  }

  /** Follows what ends credentials. Goes on where it was when it is called again. */
  async watch(signal: AbortSignal): Promise<void> {
    const { store, hints } = this.#deps
    const forgetHint = hints.on('revoked', (text) => this.#forget(...(text.split(' ') as [string, string])))
    try {
      if (this.#position === undefined) this.#reached(await store.head())
      for await (const batch of store.subscribe({ after: this.#position ?? '', types: WATCHED, signal })) {
        for (const { event } of batch.events) this.#follow(event)
        this.#reached(batch.cursor)
      }
    } finally {
      forgetHint()
    }
  }

  /** The credential, or all that was issued under the key, was ended or changed: from the next request on it holds. */
  ended(api_key_id: string, id = api_key_id): void {
    this.#forget(api_key_id, id)
    this.#deps.hints.publish('revoked', `${api_key_id} ${id}`)
  }

  /** Ends the reply when its credential does, or no longer allows it (A4). */
  hold(reply: OpenReply): void {
    this.#open.add(reply)
    const { kind, id } = reply.credential
    // It may have ended between its authentication and now.
    if (this.#current(kind, id)?.credential !== reply.credential) void this.#check(id, [reply])
  }

  #follow(event: DomainEvent): void {
    if (event.type === 'ApiKeyChanged' || event.type === 'ApiKeyDeleted') this.#forget(event.api_key_id)
    else if (event.type === 'ServiceKeysRevoked') this.#forget(event.api_key_id, ...event.service_key_ids)
    else if (event.type === 'SessionsEnded' && event.reason === 'revoked')
      this.#forget(event.api_key_id, ...event.session_ids)
  }

  #forget(api_key_id: string, ...ids: readonly string[]): void {
    this.#endings++
    for (const id of ids.length > 0 ? ids : [api_key_id]) this.#known.delete(id)
    for (const [id, replies] of this.#open.under(api_key_id)) void this.#check(id, replies)
  }

  async #check(id: string, replies: readonly OpenReply[]): Promise<void> {
    for (const reply of replies) {
      try {
        const { kind } = reply.credential
        const known = this.#current(kind, id) ?? (await this.#load(kind, id))
        if (!known || !(await reply.mayStill(known.credential))) reply.end()
      } catch {
        reply.end() // it cannot be known: the client comes back and asks
      }
    }
  }

  #reached(position: Cursor): void {
    this.#position = position
    this.#waiting.release(position)
  }

  /** Resolves when the watch has seen all that the log held just now (A1). */
  #inTouch(): Promise<void> {
    return (this.#asking ??= this.#ask().finally(() => (this.#asking = undefined)))
  }

  async #ask(): Promise<void> {
    const asked = clock.monotonic()
    const head = await this.#deps.store.head()
    if (this.#position === undefined || this.#position < head) {
      const late = AbortSignal.timeout(TOUCH_MS)
      await this.#waiting.wait(head, late)
      if (late.aborted)
        throw new AppError('unavailable', 'What ends credentials cannot be followed at the moment')
    }
    this.#trustedUntil = asked + TRUST_MS
  }

  /** What is known, unless its API key is no longer the one it was loaded with (A3). */
  #current(kind: CredentialKind, id: string): Known | undefined {
    const known = this.#known.get(id)
    if (known?.credential.kind !== kind) return undefined
    return known.parent && this.#known.get(known.credential.api_key_id) !== known.parent ? undefined : known
  }

  async #load(kind: CredentialKind, id: string): Promise<Known | undefined> {
    const endings = this.#endings
    await this.#deps.views.settled('apiKeys', ...READ[kind])
    const known = await (kind === 'api-key' ? this.#apiKey(id) : this.#issued(kind, id))
    if (!known || endings !== this.#endings) return known
    if (known.parent) this.#known.set(known.parent.credential.id, known.parent)
    this.#known.set(id, known)
    return known
  }

  async #apiKey(id: string): Promise<Known | undefined> {
    const doc = await this.#deps.views.apiKeys.get(id)
    if (!doc?.enabled) return undefined
    const { env_id, mac } = doc
    const permissions = compilePermissions(doc.permissions)
    const credential = {
      kind: 'api-key',
      id,
      env_id,
      api_key_id: id,
      permissions,
      expires: Infinity,
    } as const
    return { mac, credential, parent: null, used: 0 }
  }

  async #issued(kind: 'session' | 'service-key', id: string): Promise<Known | undefined> {
    const { sessions, serviceKeys } = this.#deps.views
    const doc = await (kind === 'session' ? sessions : serviceKeys).get(id)
    if (!doc || ('revoked_at' in doc && doc.revoked_at !== null)) return undefined
    const { api_key_id, env_id, mac, expires_at } = doc
    const parent = this.#current('api-key', api_key_id) ?? (await this.#apiKey(api_key_id))
    if (!parent) return undefined
    const credential = {
      kind,
      id,
      env_id,
      api_key_id,
      permissions: bothAllow(compilePermissions(doc.permissions), parent.credential.permissions),
      expires: expires_at === null ? Infinity : Date.parse(expires_at),
      ...('revoked_at' in doc && doc.metadata !== undefined && { metadata: doc.metadata }),
    }
    return { mac, credential, parent, used: -Infinity }
  }

  /** Nobody waits for it, and when it cannot be stored the next use is told. */
  #tellUse(known: Known): void {
    known.used = clock.monotonic()
    const { id, api_key_id, env_id } = known.credential
    this.#deps.aggregates.issued
      .handle(
        streamOf.issued(api_key_id),
        { type: 'UseServiceKey', api_key_id, service_key_id: id, now: clock.iso() },
        { env_id, correlation_id: id, actor: id },
      )
      .catch(() => (known.used = -Infinity))
  }
}
