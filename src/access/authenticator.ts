import { BoundedMap } from '../boundedMap.ts'
import { clock, elapsedMs, type Instant, wallNow } from '../clock.ts'
import { AppError, isAppError } from '../errors.ts'
import { USE_RECORDED_EVERY_MS } from '../events/credential.ts'
import { type Cursor, START } from '../events/event.ts'
import type { DomainEvent, EventType } from '../events/index.ts'
import { heapBytesOf } from '../loops/heapBytes.ts'
import type { EventStore } from '../ports/eventStore.ts'
import type { Hints } from '../ports/hints.ts'
import type { Views } from '../projections/views.ts'
import { Waiters } from '../projections/waiters.ts'
import type { Keyring } from '../secrets/keyring.ts'
import { type Credential, unauthorized } from './credential.ts'
import { OpenReplies, type OpenReply } from './openReplies.ts'
import { credentialsSettled, type Stored, storedApiKey, storedIssued } from './storedCredential.ts'
import { type CredentialKind, parseToken, sameText } from './tokens.ts'

interface Known extends Stored {
  /** The API key that issued it, as of the time of loading; null for an API key. */
  readonly parent: Known | null
  /** The verified secret: the same secret needs no second hash. */
  proven?: string
  /** Time of the last reported use, monotonic milliseconds. */
  used: number
}

interface Deps {
  readonly store: EventStore
  readonly views: Pick<Views, 'apiKeys' | 'envs' | 'sessions' | 'serviceKeys' | 'settled'>
  readonly hints: Pick<Hints, 'publish' | 'on'>
  readonly keyring: Pick<Keyring, 'proves'>
  /** Records that a service key was used; the request does not wait for it. */
  readonly onUse: (credential: Credential) => Promise<unknown>
  /** By default the monotonic clock. */
  readonly monotonic?: () => number
  /** By default the time of the machine. */
  readonly wall?: () => number
}

const KNOWN = 10_000
/** Of their permissions and metadata, which a client chooses. */
const KNOWN_BYTES = 16 << 20
/** Compared with the secret of an unknown id, so that the reply takes as long as for a known id. */
const NO_MAC = '0'.repeat(64)
/** A known credential is trusted for this long after the watch last reached the end of the log. */
const TRUST_MS = 1000
/** The time that a request waits for the watch to reach the end of the log. */
const TOUCH_MS = 5000

const WATCHED: readonly EventType[] = [
  'ApiKeyChanged',
  'ApiKeyDeleted',
  'SessionsEnded',
  'ServiceKeysRevoked',
]

/**
 * Finds the credential of a bearer token (SPEC.md, Authentication).
 *
 * A1: facts end credentials, and every node follows these facts. A node forgets the credential that a fact ends. It
 * trusts no credential when it has not reached the end of the log within the last second.
 * A2: an unknown credential is looked up in read models that contain everything appended before the request.
 * A3: a session or service key is valid while its API key is enabled and not expired, and allows what both of them allow.
 * A4: an open stream ends when its credential ends or no longer allows the stream.
 */
export class Authenticator {
  readonly #deps: Deps
  readonly #monotonic: () => number
  readonly #wall: () => number
  readonly #known = new BoundedMap<string, Known>(KNOWN, KNOWN_BYTES)
  readonly #open = new OpenReplies()
  readonly #waiting = new Waiters()
  #position: Cursor | undefined
  /** The time at which the watch last knew the whole log. */
  #knewAll: Instant = { monotonic: -Infinity, wall: -Infinity }
  #asking: Promise<void> | undefined
  /** Counts endings: a credential that was loaded during an ending may be out of date and is not cached. */
  #endings = 0

  constructor(deps: Deps) {
    this.#deps = deps
    this.#monotonic = deps.monotonic ?? (() => clock.monotonic())
    this.#wall = deps.wall ?? wallNow
  }

  /**
   * Resolves with the credential of a token. Rejects with the same `unauthorized` for every fault. `mayProve` is called
   * before the work for a token that is not known to be valid, and may throw.
   */
  async authenticate(token: string | undefined, mayProve?: () => void): Promise<Credential> {
    const parsed = token === undefined ? null : parseToken(token)
    if (!parsed) throw unauthorized()
    if (!this.#isTrusted) await this.#caughtUp()
    const { kind, id, secret } = parsed
    const cached = this.#current(kind, id)
    const isProven = cached?.proven !== undefined && sameText(cached.proven, secret)
    if (!isProven) mayProve?.()
    const known = cached ?? (await this.#load(kind, id))
    const isValid = isProven || this.#deps.keyring.proves(secret, known?.mac ?? NO_MAC)
    if (!isValid || !known) throw unauthorized()
    known.proven = secret
    const { credential } = known
    if (credential.expires <= clock.now()) throw unauthorized()
    if (kind === 'service-key' && this.#monotonic() - known.used > USE_RECORDED_EVERY_MS)
      this.#reportUse(known)
    return credential
  }

  /** Follows the facts that end credentials. A later call continues where the previous one stopped. */
  async watch(signal: AbortSignal): Promise<void> {
    const { store, hints } = this.#deps
    const forgetHint = hints.on('revoked', (text) => this.#forget(...(text.split(' ') as [string, string])))
    try {
      if (this.#position === undefined) this.#reached(await store.head())
      for await (const batch of store.subscribe({ after: this.#position ?? START, types: WATCHED, signal })) {
        for (const { event } of batch.events) this.#follow(event)
        this.#reached(batch.cursor)
      }
    } finally {
      forgetHint()
    }
  }

  /**
   * Applies the end or change of a credential from the next request on. Without `id`, it applies to the API key and all
   * its credentials. The hint only informs other nodes sooner: they also read the fact (A1).
   */
  ended(api_key_id: string, id = api_key_id): void {
    this.#forget(api_key_id, id)
    this.#deps.hints.publish('revoked', `${api_key_id} ${id}`)
  }

  /** Ends the reply when its credential ends or no longer allows it (A4). */
  hold(reply: OpenReply): void {
    this.#open.add(reply)
    const { kind, id } = reply.credential
    // The credential may have ended since the request was authenticated.
    if (this.#current(kind, id)?.credential !== reply.credential) void this.#check(id, [reply])
  }

  #follow(event: DomainEvent): void {
    if (event.type === 'ApiKeyChanged' || event.type === 'ApiKeyDeleted') this.#forget(event.api_key_id)
    else if (event.type === 'ServiceKeysRevoked') this.#forget(event.api_key_id, ...event.service_key_ids)
    else if (event.type === 'SessionsEnded') this.#forget(event.api_key_id, ...event.session_ids)
  }

  #forget(api_key_id: string, ...ids: readonly string[]): void {
    this.#endings++
    const ended = new Set(ids.length > 0 ? ids : [api_key_id])
    for (const id of ended) this.#known.delete(id)
    for (const [id, replies] of this.#open.under(api_key_id))
      if (ended.has(id) || ended.has(api_key_id)) void this.#check(id, replies)
  }

  async #check(id: string, replies: readonly OpenReply[]): Promise<void> {
    for (const reply of replies) {
      try {
        const { kind } = reply.credential
        const known = this.#current(kind, id) ?? (await this.#load(kind, id))
        if (!known || !(await reply.mayStill(known.credential))) reply.end()
        else this.#open.expire(reply, known.credential.expires)
      } catch {
        reply.end() // the credential cannot be checked, so the client must reconnect
      }
    }
  }

  #reached(position: Cursor): void {
    this.#position = position
    this.#waiting.release(position)
  }

  /** Whether the watch knew the whole log within the last second, also if the machine was suspended since (A1). */
  get #isTrusted(): boolean {
    return elapsedMs(this.#knewAll, this.#monotonic(), this.#wall()) <= TRUST_MS
  }

  /** Resolves when the watch has read everything that the log contained within the last second (A1). */
  async #caughtUp(): Promise<void> {
    await this.#asking // its look at the log may be older than the last second
    if (!this.#isTrusted) await (this.#asking ??= this.#ask().finally(() => (this.#asking = undefined)))
  }

  async #ask(): Promise<void> {
    const asked = { monotonic: this.#monotonic(), wall: this.#wall() }
    const head = await this.#deps.store.head()
    if (this.#position === undefined || this.#position < head) {
      const late = AbortSignal.timeout(TOUCH_MS)
      await this.#waiting.wait(head, late)
      if (late.aborted)
        throw new AppError(
          'unavailable',
          'The log cannot be read at the moment, so the credential cannot be checked',
        )
    }
    this.#knewAll = asked
  }

  /** The known credential, unless its API key was reloaded since (A3). */
  #current(kind: CredentialKind, id: string): Known | undefined {
    const known = this.#known.get(id)
    if (known?.credential.kind !== kind) return undefined
    return known.parent && this.#known.get(known.credential.api_key_id) !== known.parent ? undefined : known
  }

  async #load(kind: CredentialKind, id: string): Promise<Known | undefined> {
    const endings = this.#endings
    await credentialsSettled(this.#deps.views, kind)
    const known = await (kind === 'api-key' ? this.#apiKey(id) : this.#issued(kind, id))
    if (!known || endings !== this.#endings) return known
    if (known.parent) this.#keep(known.parent)
    this.#keep(known)
    return known
  }

  #keep(known: Known): void {
    const { id, granted, metadata } = known.credential
    this.#known.set(id, known, heapBytesOf(granted) + heapBytesOf(metadata))
  }

  async #apiKey(id: string): Promise<Known | undefined> {
    const stored = await storedApiKey(this.#deps.views, id)
    return stored && { ...stored, parent: null, used: 0 }
  }

  async #issued(kind: 'session' | 'service-key', id: string): Promise<Known | undefined> {
    const stored = await storedIssued(
      this.#deps.views,
      { kind, id },
      async (api_key_id) => this.#current('api-key', api_key_id) ?? (await this.#apiKey(api_key_id)),
    )
    return stored && { ...stored, used: -Infinity }
  }

  /**
   * Reports a use of the credential. If the report cannot be stored, the next use is reported; after a refusal by the plan, one
   * a minute later.
   */
  #reportUse(known: Known): void {
    known.used = this.#monotonic()
    this.#deps.onUse(known.credential).catch((error: unknown) => {
      if (!isAppError(error, 'rate_limit_exceeded')) known.used = -Infinity
    })
  }
}
