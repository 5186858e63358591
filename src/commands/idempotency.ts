import { createHash } from 'node:crypto'
import { clock, isoOf } from '../clock.ts'
import { roughBytes } from '../content/payloads.ts'
import { replyKey } from '../content/replyKey.ts'
import { readFact } from './streams/readFact.ts'
import { AppError, isAppError } from '../errors.ts'
import type { EnvCause } from '../events/event.ts'
import type { EventOf } from '../events/index.ts'
import { type Payload, payloadFields, payloadOf } from '../events/payload.ts'
import { sortedKeys } from '../events/sortedKeys.ts'
import { streamOf } from '../events/streams.ts'
import { derivedIdBeside, type NewId, newId } from '../ids.ts'
import type { Logger } from '../logger.ts'
import { reads } from '../loops/slices.ts'
import { earlierNow, laterNow } from '../loops/twoClocks.ts'
import type { CommandDeps } from './deps.ts'

/** An answer is replayed for this time (DESIGN.md, Contract). */
export const REPLAYED_MS = 24 * 60 * 60 * 1000

/** Whether a stream is the claim and the reply of an `Idempotency-Key`. */
export const isReply = (stream: string): boolean => stream.startsWith(streamOf.request(''))

/** The default time that a duplicate waits for the answer to the first request. */
const WAIT_MS = 5000
/** A waiting duplicate asks this often whether the holder of the claim is dead. */
const RECHECK_MS = 1000
/** A claim older than the longest request has lost its holder. */
const LONGEST_MS = 20 * 60 * 1000

/** Bytes of the JSON of a request whose fingerprints take long. */
const LARGE_BYTES = 64 << 10

/** The scope of a key: the environment, the credential, the method and the path. */
export type Scope = readonly string[]

type Deps = Pick<CommandDeps, 'store' | 'aggregates' | 'payloads' | 'keyring' | 'stopping'> & {
  readonly quotas: Pick<CommandDeps['quotas'], 'dataFor'>
  readonly logger: Logger
  /** This process. */
  readonly holder: string
  /** Whether another process is known to be dead. */
  readonly isGone: (holder: string) => boolean
  /** The time that a duplicate waits for the answer to the first request. */
  readonly waitMs?: number
  /** Whether svc 0.1.0 began the log, so that keys may have claims in its scope. */
  readonly hasEarlierKeys?: boolean
}

interface KeyedRequest {
  readonly key: string
  readonly scope: Scope
  /** The scope that svc 0.1.0 gave the key: without the credential. */
  readonly earlierScope?: Scope
  /** Everything that may differ between requests with the same key, apart from the order of the fields of its objects. */
  readonly request: unknown
  /** The same with the keys of its objects in order, if it is a digest, so that this cannot be derived from it. */
  readonly sorted?: unknown
  /** The request and its caller, which the claim and the answer record. */
  readonly cause: EnvCause
  /** The name of the key in refusals. */
  readonly keyName?: string
  /** Of a run: its stream. Attempts of other runs publish in the stream of the first, where its event is found. */
  readonly stream_id?: string
  /** In place of the default of the node. */
  readonly waitMs?: number
  /** Ends the wait for the answer to the first request. */
  readonly signal?: AbortSignal
}

/** Does the work. `stream_id` is that of the request that first used the key. */
type Work<T> = (newId: NewId, stream_id: string | undefined) => Promise<T>

/**
 * Does the work of a request once for its `Idempotency-Key`, across nodes and restarts.
 * K1: the node that appends the claim does the work; every other caller waits for the answer or gets `conflict`.
 * K2: an answer is stored before any caller gets it (I1), unless the plan has no room for a large one.
 * K3: when the holder of a claim dies, or its answer was not stored or was erased, the next one works with the same ids, so a
 * repeated command is a no-op. Decision 0016 lists the exceptions.
 */
export class Idempotency {
  readonly #deps: Deps
  /** Streams of the requests that this process works on. */
  readonly #working = new Set<string>()

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /**
   * Resolves with the value of `work`, which must be JSON, or with the stored one. An error of `work` is not stored.
   * Rejects with `idempotency_key_reused`, or with `conflict` while the first request is still in progress.
   */
  async once<T>(
    asked: KeyedRequest,
    work: Work<T>,
  ): Promise<{ readonly value: T; readonly replayed: boolean }> {
    const { aggregates, holder, stopping, store } = this.#deps
    const stream = (await this.#earlierStream(asked)) ?? streamIn(asked.scope, asked.key)
    const fingerprints = await this.#fingerprintsOf(asked)
    const { cause, keyName = 'Idempotency-Key', signal } = asked
    const ending = signal ? AbortSignal.any([signal, stopping]) : stopping
    const deadline = clock.monotonic() + (asked.waitMs ?? this.#deps.waitMs ?? WAIT_MS)
    for (let gone: number | undefined; ;) {
      const [claimed] = (
        await aggregates.requests.handle(
          stream,
          {
            type: 'ClaimRequest',
            claim_id: newId(),
            ...fingerprints,
            keyName,
            holder,
            now: isoOf(earlierNow(store)),
            at: isoOf(laterNow(store)),
            until: isoOf(laterNow(store) + REPLAYED_MS),
            stream_id: asked.stream_id,
            gone,
          },
          cause,
        )
      ).events
      if (claimed?.type === 'RequestClaimed') {
        const done = await this.#work(stream, claimed, asked, work)
        if (done) return { value: done.value, replayed: false }
      }
      const { state, revision } = await aggregates.requests.read(stream, (state, revision) => ({
        state,
        revision,
      }))
      if (state.status === 'answered') {
        const kept = await this.#kept(stream, state.revision, cause.env_id)
        if (kept) return { value: kept.value as T, replayed: true }
        gone = state.attempt
        continue
      }
      gone = state.status === 'claimed' && this.#isGone(stream, state) ? state.attempt : undefined
      if (gone !== undefined || state.status !== 'claimed') continue
      const left = deadline - clock.monotonic()
      if (left <= 0 || ending.aborted)
        throw new AppError('conflict', `${keyName}: the first request with this key is still in progress`)
      await this.#change(stream, revision, Math.min(left, RECHECK_MS), ending)
    }
  }

  /**
   * The first is that of former versions, whose nodes may work beside this one. Each step of a large request has a turn of the
   * event loop of its own.
   */
  async #fingerprintsOf({ request, sorted }: KeyedRequest) {
    const { keyring } = this.#deps
    const isLarge = roughBytes(request, LARGE_BYTES) >= LARGE_BYTES
    const nextStep = async () => {
      if (isLarge) await reads.take()
    }
    await nextStep()
    const fingerprint = keyring.macOf(JSON.stringify(request))
    await nextStep()
    const inOrder = sorted ?? sortedKeys(request)
    if (inOrder === request) return { fingerprint }
    await nextStep()
    const sorted_fingerprint = keyring.macOf(JSON.stringify(inOrder))
    return { fingerprint, ...(sorted_fingerprint !== fingerprint && { sorted_fingerprint }) }
  }

  /** The stream in which svc 0.1.0 claimed the key, while its claim is valid: a request is repeated across the upgrade. */
  async #earlierStream({ key, earlierScope }: KeyedRequest): Promise<string | null> {
    const { aggregates, hasEarlierKeys, store } = this.#deps
    if (!hasEarlierKeys || !earlierScope) return null
    const stream = streamIn(earlierScope, key)
    const isValid = await aggregates.requests.read(
      stream,
      (state) => state.status !== 'free' && state.until > isoOf(earlierNow(store)),
    )
    return isValid ? stream : null
  }

  /** Resolves with null when the work took so long that another node took over. */
  async #work<T>(
    stream: string,
    { claim_id, attempt, stream_id }: EventOf<'RequestClaimed'>,
    { cause }: KeyedRequest,
    work: Work<T>,
  ): Promise<{ value: T } | null> {
    const { aggregates, logger, store } = this.#deps
    const { env_id, correlation_id: request_id } = cause
    const release = () =>
      aggregates.requests
        .handle(stream, { type: 'ReleaseRequest', attempt }, cause)
        .catch(() => logger.warn('An idempotency key remains claimed until its next use', { request_id }))
    this.#working.add(stream)
    try {
      let value: T
      try {
        value = await work((what) => derivedIdBeside(claim_id, what), stream_id)
      } catch (error) {
        await release()
        throw error
      }
      const sealed = await this.#keep(stream, value, env_id)
      if (!sealed) {
        await release()
        return { value }
      }
      const answer = payloadFields('sealed', sealed)
      const until = isoOf(laterNow(store) + REPLAYED_MS)
      const { events } = await aggregates.requests.handle(
        stream,
        { type: 'AnswerRequest', attempt, answer, until },
        cause,
      )
      return events.length > 0 ? { value } : null
    } finally {
      this.#working.delete(stream)
    }
  }

  /** Resolves with null if the plan has no room for the answer. */
  async #keep(stream: string, value: unknown, env_id: string): Promise<Payload<string> | null> {
    const { payloads, keyring, quotas, store } = this.#deps
    const sealed = await keyring.seal(env_id, stream, JSON.stringify(value))
    const room = quotas.dataFor(env_id)
    try {
      return await payloads.keep(sealed, { key: replyKey(env_id, laterNow(store)) }, room)
    } catch (error) {
      if (isAppError(error, 'quota_exceeded')) return null
      throw error
    } finally {
      room.release()
    }
  }

  #isGone(stream: string, { holder, at }: { holder: string; at: string }): boolean {
    if (Date.parse(at) + LONGEST_MS < earlierNow(this.#deps.store)) return true
    return holder === this.#deps.holder ? !this.#working.has(stream) : this.#deps.isGone(holder)
  }

  /** Resolves with null if the answer was erased with the secrets of its environment. */
  async #kept(stream: string, revision: number, env_id: string): Promise<{ readonly value: unknown } | null> {
    const { store, payloads, keyring } = this.#deps
    const event = (await readFact(store, stream, revision))?.event
    if (event?.type !== 'RequestAnswered')
      throw new AppError('internal_server_error', `Expected the answer of a request at ${stream} ${revision}`)
    const sealed = (await payloads.load(payloadOf('sealed', event))) as string
    try {
      return { value: JSON.parse(await keyring.unseal(env_id, stream, sealed)) as unknown }
    } catch (error) {
      if (isAppError(error, 'not_found')) return null
      throw error
    }
  }

  /** Resolves when a fact was appended after the revision, at the latest after `ms`. */
  async #change(stream: string, after: number, ms: number, ending: AbortSignal): Promise<void> {
    const signal = AbortSignal.any([AbortSignal.timeout(Math.ceil(ms)), ending])
    for await (const { events } of this.#deps.store.follow(stream, { after, signal })) {
      if (events.length > 0) return
    }
  }
}

const streamIn = (scope: Scope, key: string): string =>
  streamOf.request(
    createHash('sha256')
      .update(JSON.stringify([...scope, key]))
      .digest('hex'),
  )
