import { clock } from '../../src/clock.ts'
import { openAggregates } from '../../src/domain/aggregates.ts'
import { START } from '../../src/events/event.ts'
import { silent } from '../../src/logger.ts'
import { Alarms } from '../../src/sagas/alarms.ts'
import { fireSchedules } from '../../src/sagas/fireSchedules.ts'
import { runSaga } from '../../src/sagas/runSaga.ts'
import type { Node } from '../support/openNode.ts'

/** The head of a log that contains nothing: a seeded directory follows none. */
export const nothingStored = { head: () => Promise.resolve(START) }

/** The sagas of three nodes on one log, at a time that the test sets. */
export class MortalNodes {
  /** Milliseconds that the clock of the nodes is ahead. */
  shift = 0
  /** The next node that fires dies before its append, or after it was stored and before it was acknowledged. */
  readonly fates: ('before' | 'after')[] = []
  readonly #node: Node
  readonly #directory: Parameters<typeof fireSchedules>[0]['directory']
  #alive = 0

  constructor(node: Node, directory: Parameters<typeof fireSchedules>[0]['directory']) {
    this.#node = node
    this.#directory = directory
  }

  readonly now = (): number => clock.now() + this.shift

  /** Starts nodes until three are alive. */
  startAll(): void {
    while (this.#alive < 3) this.#start()
  }

  #start(): void {
    this.#alive++
    const process = new AbortController()
    const { streams } = openAggregates(this.#node.store)
    const die = (): Promise<never> => {
      this.#alive--
      process.abort()
      return new Promise(() => {})
    }
    const handle = (async (...args: Parameters<typeof streams.handle>) => {
      const fate = this.fates.shift()
      if (fate === 'before') return die()
      const handled = await streams.handle(...args)
      return fate === 'after' ? die() : handled
    }) as typeof streams.handle
    const { now } = this
    const aggregates = { streams: { handle } as typeof streams }
    const store = nothingStored
    const deps = { ...this.#node, aggregates, directory: this.#directory, store, logger: silent, now }
    const shown = { now, monotonic: clock.monotonic }
    const alarms = new Alarms({ clock: shown, lookEveryMs: 5 })
    const signal = AbortSignal.any([process.signal, this.#node.signal])
    void runSaga(fireSchedules(deps), { logger: silent, clock: shown, alarms }, signal)
  }
}
