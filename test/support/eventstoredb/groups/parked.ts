import { isoOf, clock } from '../../../../src/clock.ts'
import type { Log } from '../log.ts'
import type { Resolved } from '../links.ts'
import { bytesOf, metaStreamOf, type Stored } from '../stored.ts'
import { metadata, systemEvent } from '../systemEvents.ts'
import type { Definition } from './definition.ts'

/** Links to the events that a group has put aside. */
export class Parked {
  readonly #log: Log
  readonly #stream: string

  constructor(log: Log, { stream, group }: Definition) {
    this.#log = log
    this.#stream = `$persistentsubscription-${stream}::${group}-parked`
  }

  get count(): number {
    return this.#links().length
  }

  add({ event, link }: Resolved, reason: string): void {
    const parked = event ?? link
    if (!parked) return
    const to = systemEvent('$>', `${parked.revision}@${parked.stream}`)
    const why = bytesOf(JSON.stringify({ added: isoOf(clock.now()), reason }))
    this.#log.append(this.#stream, [{ ...to, metadata: why }], 'any')
  }

  /** Removes and returns the `limit` oldest links. */
  take(limit: number): Stored[] {
    const links = this.#links().slice(0, limit)
    const last = links.at(-1)
    if (last) {
      const from = `{"$tb":${last.revision + 1}}`
      this.#log.append(metaStreamOf(this.#stream), [metadata(from)], 'any')
    }
    return links
  }

  remove(): void {
    this.#log.delete(this.#stream, 'any')
  }

  #links(): Stored[] {
    return this.#log.events(this.#stream).slice(this.#log.firstShown(this.#stream))
  }
}
