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

const isLong = ({ beganAt }: Outage): boolean => clock.monotonic() - beganAt >= TOLERATED_MS

/** The outages of the engines of this node. The log has one line at the beginning of each outage and one at its end. */
export class Outages {
  readonly #outages = new Map<string, Outage>()
  /** The number of outages of each watched engine. */
  readonly #begun = new Map<EngineId, number>()
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
    return this.#outages.values().some((outage) => outage.engine.id === id && isLong(outage))
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
