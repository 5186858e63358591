import { setTimeout as delay } from 'node:timers/promises'
import { BoundedMap } from '../boundedMap.ts'
import { abandonEvent } from '../commands/events/abandonEvent.ts'
import { abandonRun } from '../commands/runs/abandonRun.ts'
import type { CommandDeps } from '../commands/deps.ts'
import { isRetryable, messageOf, PermanentError, stackOf } from '../errors.ts'
import { describeFact, isOf } from '../events/event.ts'
import type { Logger } from '../logger.ts'
import { jittered, pauseAfter, type Pauses } from '../loops/backoff.ts'
import { throttled } from '../loops/throttled.ts'
import type { Delivery } from '../ports/eventStore.ts'

/** The pause before a delivery is claimed again after an outage, milliseconds. */
const RETRY_MS = 200

/** Attempts to claim a delivery that fails because of a defect. They take about a minute and a half. */
const MAX_ATTEMPTS = 10
/**
 * With jitter, the longest pause is shorter than the time after which EventStoreDB redelivers an unacknowledged event.
 */
const PAUSES: Pauses = { firstMs: 200, longestMs: 30_000 }

/** Number of deliveries for which failed attempts are counted. */
const COUNTED = 4096

/**
 * Handles a delivery that could not be claimed. No delivery is lost silently (I3):
 * - During an outage it is redelivered without a limit.
 * - After a defect it is redelivered up to `MAX_ATTEMPTS` times. Then it is abandoned, and its stream records the reason.
 * - If that cannot be stored, or this version cannot read the stream, it is delivered again after a restart.
 *
 * The first defect of a delivery is logged with its stack.
 */
export class FailedClaims {
  readonly #deps: Pick<CommandDeps, 'aggregates'> & { readonly logger: Logger }
  readonly #pauses: Pauses
  /** Logs outages, which many deliveries meet at once. */
  readonly #warn: Logger['warn']
  readonly #defects = new BoundedMap<string, number>(COUNTED)

  constructor(
    deps: Pick<CommandDeps, 'aggregates'> & { readonly logger: Logger },
    { pauses = PAUSES }: { readonly pauses?: Pauses | undefined } = {},
  ) {
    this.#deps = deps
    this.#pauses = pauses
    this.#warn = throttled(deps.logger)
  }

  async settle(delivery: Delivery, error: unknown): Promise<void> {
    if (isRetryable(error)) return this.#waitOut(delivery, error)
    const { logger } = this.#deps
    const { id } = delivery.event
    const fact = describeFact(delivery.event)
    const defects = (this.#defects.get(id) ?? 0) + 1
    this.#defects.set(id, defects)
    if (defects === 1) logger.error('A delivery could not be claimed', { fact, error: stackOf(error) })
    if (error instanceof PermanentError) return
    if (defects >= MAX_ATTEMPTS) return this.#giveUp(delivery, fact)
    await delay(jittered(pauseAfter(defects - 1, this.#pauses)), undefined, { ref: false })
    delivery.retry()
  }

  async #waitOut(delivery: Delivery, error: unknown): Promise<void> {
    this.#warn('An event could not be claimed and is retried', {
      event: delivery.event.id,
      error: messageOf(error),
    })
    await delay(RETRY_MS, undefined, { ref: false })
    delivery.retry()
  }

  async #giveUp(delivery: Delivery, fact: string): Promise<void> {
    const { logger } = this.#deps
    const { event: delivered } = delivery
    try {
      if (isOf(delivered, 'EventPublished')) await abandonEvent(this.#deps, { published: delivered })
      if (isOf(delivered, 'RunRequested')) await abandonRun(this.#deps, { requested: delivered })
    } catch (error) {
      if (isRetryable(error)) return this.#waitOut(delivery, error)
      const fields = { fact, error: stackOf(error) }
      logger.error('A delivery could be neither claimed nor abandoned', fields)
      return
    }
    logger.error(`A delivery could not be claimed ${MAX_ATTEMPTS} times and was abandoned`, { fact })
    delivery.ack()
  }
}
