import { setTimeout as delay } from 'node:timers/promises'
import { clock } from '../clock.ts'
import { AppError, isAppError, messageOf } from '../errors.ts'
import type { Logger } from '../logger.ts'
import { withDeadline } from '../loops/deadline.ts'

/** An engine is asked this often, milliseconds. */
const ASK_EVERY_MS = 1000
/** Time for its reply, milliseconds: longer than the deadlines of most adapters, whose errors say more. */
const REPLY_MS = 4000
/** After an outage of this length the node is not ready, milliseconds. Shorter ones are not worth a change of nodes. */
const TOLERATED_MS = 5000
/** After an outage of this length, others take over what this node works on, milliseconds. */
const CUT_OFF_MS = 60_000
/** The end of an outage of all nodes is noticed by all of them in this time, milliseconds. */
const RETURN_MS = 15_000

export type EngineId = 'event_store' | 'read_models' | 'blobs'

/** An engine of this node. */
export interface AskedEngine {
  /** Identifies it in the metrics. */
  readonly id: EngineId
  /** The subject of a sentence, such as `The event store`. */
  readonly name: string
  /** Rejects if the engine cannot serve this node. */
  readonly ask: () => Promise<unknown>
}

interface Outage {
  readonly engine: AskedEngine
  /** ISO 8601. */
  readonly since: string
  readonly beganAt: number
}

const ageOf = ({ beganAt }: Outage): number => clock.monotonic() - beganAt
const isLong = (outage: Outage): boolean => ageOf(outage) >= TOLERATED_MS

/** The outages of the engines of this node. The log has one line at the beginning of each outage and one at its end. */
export class Outages {
  readonly #outages = new Map<string, Outage>()
  /** The number of outages of each watched engine. */
  readonly #begun = new Map<EngineId, number>()
  /** The end of the last outage of each engine that may have cut other nodes off, monotonic milliseconds. */
  readonly #returned = new Map<EngineId, number>()
  readonly #logger: Logger

  constructor(logger: Logger) {
    this.#logger = logger
  }

  /** The outages at this moment, for `/readyz`. */
  get current(): readonly { readonly engine: string; readonly since: string }[] {
    return [...this.#outages.values()].map(({ engine, since }) => ({ engine: engine.name, since }))
  }

  /** The watched engines: whether they answer, and the number of their outages since the start. */
  get engines(): readonly { readonly id: EngineId; readonly answers: boolean; readonly outages: number }[] {
    const away = new Set([...this.#outages.values()].map(({ engine }) => engine.id))
    return [...this.#begun].map(([id, outages]) => ({ id, answers: !away.has(id), outages }))
  }

  /** The reason why the node is not ready; null while all outages are short. */
  get reason(): string | null {
    for (const outage of this.#outages.values())
      if (isLong(outage)) return `${outage.engine.name} has not answered since ${outage.since}`
    return null
  }

  /** Whether an engine has not answered for so long that the node is not ready. */
  isAway(id: EngineId): boolean {
    return this.#of(id).some(isLong)
  }

  /** Whether an engine has not answered for so long that others take over what this node works on. */
  isCutOff(id: EngineId): boolean {
    return this.#of(id).some((outage) => ageOf(outage) >= CUT_OFF_MS)
  }

  /**
   * Whether this node may take over the work of nodes that are cut off from an engine. It may not while the engine does not
   * answer here either, and not until all nodes have noticed the end of a long outage.
   */
  isSettled(id: EngineId): boolean {
    const returned = this.#returned.get(id) ?? -Infinity
    return this.#of(id).length === 0 && clock.monotonic() - returned >= RETURN_MS
  }

  /** Asks an engine until the signal aborts. */
  async watch(engine: AskedEngine, signal: AbortSignal): Promise<void> {
    this.#begun.set(engine.id, this.#begun.get(engine.id) ?? 0)
    while (!signal.aborted) {
      const began = { engine, since: clock.iso(), beganAt: clock.monotonic() }
      const failure = await failureOf(engine)
      if (signal.aborted) return
      const outage = this.#outages.get(engine.name)
      if (failure && !outage) this.#begin(began, failure)
      if (!failure && outage) this.#end(outage)
      await delay(ASK_EVERY_MS, undefined, { signal, ref: false }).catch(() => {})
    }
  }

  #of(id: EngineId): readonly Outage[] {
    return [...this.#outages.values()].filter(({ engine }) => engine.id === id)
  }

  #begin(outage: Outage, failure: { readonly error: unknown }): void {
    const { engine, since } = outage
    this.#outages.set(engine.name, outage)
    this.#begun.set(engine.id, (this.#begun.get(engine.id) ?? 0) + 1)
    const { error } = failure
    const data = isAppError(error) ? error.data : {}
    this.#logger.warn(`${engine.name} does not answer`, { since, error: messageOf(error), ...data })
  }

  #end({ engine, since, beganAt }: Outage): void {
    this.#outages.delete(engine.name)
    const lasted_ms = Math.round(clock.monotonic() - beganAt)
    if (lasted_ms >= CUT_OFF_MS / 2) this.#returned.set(engine.id, clock.monotonic()) // others may have noticed it earlier
    this.#logger.info(`${engine.name} answers again`, { since, lasted_ms })
  }
}

const failureOf = async ({ name, ask }: AskedEngine): Promise<{ readonly error: unknown } | undefined> => {
  try {
    await withDeadline(
      REPLY_MS,
      ask(),
      () => new AppError('unavailable', `${name} did not answer in ${REPLY_MS} ms`),
    )
    return undefined
  } catch (error) {
    return { error }
  }
}
