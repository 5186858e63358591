import { createHash } from 'node:crypto'
import { clock, isoOf } from '../clock.ts'
import { readFact } from './streams/readFact.ts'
import { AppError } from '../errors.ts'
import type { EnvCause } from '../events/event.ts'
import { payloadFields, payloadOf } from '../events/payload.ts'
import { streamOf } from '../events/streams.ts'
import { derivedIdBeside, type NewId, newId } from '../ids.ts'
import type { Logger } from '../logger.ts'
import type { CommandDeps } from './deps.ts'

/** An answer is replayed for this time (DESIGN.md, Contract). */
export const REPLAYED_MS = 24 * 60 * 60 * 1000
/** The default time that a duplicate waits for the answer to the first request. */
const WAIT_MS = 5000
/** A claim older than the longest request has lost its holder. */
const LONGEST_MS = 20 * 60 * 1000

/** The scope of a key: the environment, the credential, the method and the path. */
export type Scope = readonly string[]

type Deps = Pick<CommandDeps, 'store' | 'aggregates' | 'payloads' | 'keyring' | 'stopping'> & {
  readonly logger: Logger
  /** This process. */
  readonly holder: string
  /** Whether another process is known to be dead. */
  readonly isGone: (holder: string) => boolean
  /** The time that a duplicate waits for the answer to the first request. */
  readonly waitMs?: number
}

interface KeyedRequest {
  readonly key: string
  readonly scope: Scope
  /** Everything that may differ between requests with the same key. */
  readonly request: unknown
  /** The request and its caller, which the claim and the answer record. */
  readonly cause: EnvCause
}

/**
 * Does the work of a request once for its `Idempotency-Key`, across nodes and restarts.
 * K1: the node that appends the claim does the work; every other caller waits for the answer or gets `conflict`.
 * K2: an answer is stored before any caller gets it (I1).
 * K3: when the holder of a claim dies, the next one works with the same ids, so a repeated command is a no-op.
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
    work: (newId: NewId) => Promise<T>,
  ): Promise<{ readonly value: T; readonly replayed: boolean }> {
    const { aggregates, holder } = this.#deps
    const stream = streamOf.request(
      createHash('sha256')
        .update(JSON.stringify([...asked.scope, asked.key]))
        .digest('hex'),
    )
    const fingerprint = this.#deps.keyring.macOf(JSON.stringify(asked.request))
    const { cause } = asked
    const deadline = clock.monotonic() + (this.#deps.waitMs ?? WAIT_MS)
    for (let gone: number | undefined; ;) {
      const [claimed] = (
        await aggregates.requests.handle(
          stream,
          {
            type: 'ClaimRequest',
            claim_id: newId(),
            fingerprint,
            holder,
            now: clock.iso(),
            until: isoOf(clock.now() + REPLAYED_MS),
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
      if (state.status === 'answered')
        return { value: (await this.#kept(stream, state.revision, cause.env_id)) as T, replayed: true }
      gone = state.status === 'claimed' && this.#isGone(stream, state) ? state.attempt : undefined
      if (gone !== undefined || state.status !== 'claimed') continue
      if (!(await this.#changed(stream, revision, deadline - clock.monotonic())))
        throw new AppError(
          'conflict',
          'Idempotency-Key: the first request with this key is still in progress',
        )
    }
  }

  /** Resolves with null when the work took so long that another node took over. */
  async #work<T>(
    stream: string,
    { claim_id, attempt }: { claim_id: string; attempt: number },
    { cause }: KeyedRequest,
    work: (newId: NewId) => Promise<T>,
  ): Promise<{ value: T } | null> {
    const { aggregates, payloads, keyring, logger } = this.#deps
    const { env_id, correlation_id: request_id } = cause
    this.#working.add(stream)
    try {
      let value: T
      try {
        value = await work((what) => derivedIdBeside(claim_id, what))
      } catch (error) {
        await aggregates.requests
          .handle(stream, { type: 'ReleaseRequest', attempt }, cause)
          .catch(() => logger.warn('An idempotency key remains claimed until its next use', { request_id }))
        throw error
      }
      const sealed = await payloads.keep(await keyring.seal(env_id, stream, JSON.stringify(value)), {
        env_id,
      })
      const answer = payloadFields('sealed', sealed)
      const until = isoOf(clock.now() + REPLAYED_MS)
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

  #isGone(stream: string, { holder, at }: { holder: string; at: string }): boolean {
    if (Date.parse(at) + LONGEST_MS < clock.now()) return true
    return holder === this.#deps.holder ? !this.#working.has(stream) : this.#deps.isGone(holder)
  }

  async #kept(stream: string, revision: number, env_id: string): Promise<unknown> {
    const { store, payloads, keyring } = this.#deps
    const event = (await readFact(store, stream, revision))?.event
    if (event?.type !== 'RequestAnswered')
      throw new AppError('internal_server_error', `Expected the answer of a request at ${stream} ${revision}`)
    const text = await payloads.load(payloadOf('sealed', event))
    return JSON.parse(await keyring.unseal(env_id, stream, text as string))
  }

  /** Resolves with whether a fact was appended after the revision within `ms`. */
  async #changed(stream: string, after: number, ms: number): Promise<boolean> {
    if (ms <= 0) return false
    const signal = AbortSignal.any([AbortSignal.timeout(Math.ceil(ms)), this.#deps.stopping])
    for await (const { events } of this.#deps.store.follow(stream, { after, signal })) {
      if (events.length > 0) return true
    }
    return false
  }
}
