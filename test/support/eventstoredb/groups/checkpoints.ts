import { type Log, systemEvent } from '../log.ts'
import { textOf } from '../stored.ts'
import { ALL, type Definition } from './definition.ts'

/** How far a group has come, as the server stores it. */
export class Checkpoints {
  readonly #log: Log
  readonly #ofAll: boolean
  readonly #stream: string

  constructor(log: Log, { stream, group }: Definition) {
    this.#log = log
    this.#ofAll = stream === ALL
    this.#stream = `$persistentsubscription-${stream}::${group}-checkpoint`
  }

  /** The revision or position up to which everything was dealt with. */
  get last(): number | undefined {
    const last = this.#log.events(this.#stream)[this.#log.isMissing(this.#stream) ? -1 : this.#lastRevision()]
    return last && Number(/\d+/.exec(textOf(last.data))?.[0])
  }

  store(place: number): void {
    const text = this.#ofAll ? `"C:${place}/P:${place}"` : `"${place}"`
    this.#log.append(this.#stream, [systemEvent('$SubscriptionCheckpoint', text)], 'any')
  }

  /** A group that is made again under the same name begins anew. */
  remove(): void {
    this.#log.delete(this.#stream, 'any')
  }

  #lastRevision(): number {
    return this.#log.events(this.#stream).length - 1
  }
}
