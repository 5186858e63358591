import type { Log } from '../log.ts'
import { textOf } from '../stored.ts'
import { systemEvent } from '../systemEvents.ts'
import { ALL, type Definition } from './definition.ts'

/** The stored progress of a group. */
export class Checkpoints {
  readonly #log: Log
  readonly #ofAll: boolean
  readonly #stream: string

  constructor(log: Log, { stream, group }: Definition) {
    this.#log = log
    this.#ofAll = stream === ALL
    this.#stream = `$persistentsubscription-${stream}::${group}-checkpoint`
  }

  /** The revision or position up to which all events were handled. */
  get last(): number | undefined {
    if (this.#log.isMissing(this.#stream)) return undefined
    const last = this.#log.events(this.#stream).at(-1)
    return last && Number(/\d+/.exec(textOf(last.data))?.[0])
  }

  store(place: number): void {
    const text = this.#ofAll ? `"C:${place}/P:${place}"` : `"${place}"`
    this.#log.append(this.#stream, [systemEvent('$SubscriptionCheckpoint', text)], 'any')
  }

  remove(): void {
    this.#log.delete(this.#stream, 'any')
  }
}
