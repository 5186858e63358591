import type { AppError } from '../../../errors.ts'
import type { Recorded } from '../../../events/event.ts'
import type { Batch, Consuming, Delivery, Filter } from '../../../ports/eventStore.ts'
import { ConsumerRoom } from '../../shared/consumerRoom.ts'
import { unavailable } from '../sqlite.ts'
import { cursorOf, positionOf } from './cursors.ts'

interface Consumer {
  readonly queue: Recorded[]
  /** The events that are delivered or queued, but not acknowledged. */
  readonly room: ConsumerRoom<Recorded>
  /** The error that stopped the pump (G4). */
  failure?: AppError
  wake: () => void
}

interface GroupStore {
  subscribe(options: Filter & { after: string; signal: AbortSignal }): AsyncIterable<Batch>
  /** Returns the stored position of a group; undefined if it is new. */
  load(group: string): number | undefined
  save(group: string, position: number): void
  /** Reports progress of the group: the store calls `save` soon. */
  changed(): void
}

/**
 * A consumer group. One pump reads the log from the group's position and delivers each event to the consumer
 * with the most room.
 * G1: the stored position never passes an event that is not acknowledged.
 * G2: an event whose consumer left without an acknowledgement goes to another consumer first.
 * G3: the pump runs only while there are consumers, and stops reading while none has room.
 * G4: when the log cannot be read, every consumer gets the error. The next consumer starts the pump again.
 * G5: without consumers, it has no event in memory. The next consumer reads again from the stored position.
 */
export class Group {
  readonly #name: string
  readonly #store: GroupStore
  readonly #consumers = new Set<Consumer>()
  readonly #waiting: Recorded[] = []
  /** Delivered and waiting positions in log order; the lowest bounds the group's position (G1). */
  readonly #open = new Set<number>()
  #read: number
  #saved: number
  #pump: AbortController | undefined
  #roomMade: (() => void) | undefined
  #readers = 0

  constructor(name: string, store: GroupStore, from: number) {
    this.#name = name
    this.#store = store
    this.#read = store.load(name) ?? from
    this.#saved = this.#read
    store.save(name, this.#read)
  }

  consume(options: Consuming): AsyncGenerator<Delivery> {
    this.#readers++ // now, although it reads later: the group must not be forgotten in between
    return this.#consume(options)
  }

  async *#consume({ inFlight, inFlightBytes, signal, ...filter }: Consuming): AsyncGenerator<Delivery> {
    let notify: () => void = () => {}
    const consumer: Consumer = {
      queue: [],
      room: new ConsumerRoom({ inFlight, inFlightBytes }),
      wake: () => notify(),
    }
    this.#consumers.add(consumer)
    const aborted = () => notify()
    signal.addEventListener('abort', aborted)
    try {
      this.#startPump(filter)
      this.#handOut()
      while (!signal.aborted) {
        if (consumer.failure) throw consumer.failure
        const event = consumer.queue.shift()
        if (event) yield this.#deliver(consumer, event)
        else await new Promise<void>((resolve) => (notify = resolve))
      }
    } finally {
      signal.removeEventListener('abort', aborted)
      this.#readers--
      this.#leave(consumer)
    }
  }

  /** Whether nothing reads it. Its position is stored, so another object may continue it. */
  get isEmpty(): boolean {
    return this.#readers === 0
  }

  /** Stores the position of the group. */
  save(): void {
    const lowest = this.#open.values().next()
    const position = lowest.done ? this.#read : lowest.value - 1
    if (position === this.#saved) return
    this.#store.save(this.#name, position)
    this.#saved = position
  }

  #deliver(consumer: Consumer, event: Recorded): Delivery {
    let settled = false
    const settle = (again: boolean) => {
      if (settled || !consumer.room.free(event)) return
      settled = true
      if (again) this.#waiting.unshift(event)
      else this.#open.delete(positionOf(event.cursor))
      this.#handOut()
      this.#roomMade?.()
      this.#store.changed()
    }
    return { event, ack: () => settle(false), retry: () => settle(true) }
  }

  #leave(consumer: Consumer): void {
    this.#consumers.delete(consumer)
    this.#waiting.unshift(...consumer.room.keys.sort((a, b) => (a.cursor < b.cursor ? -1 : 1))) // G2
    consumer.room.clear()
    if (this.#consumers.size === 0) {
      this.#pump?.abort() // G3
      this.#pump = undefined
      this.save()
      this.#waiting.length = 0 // G5
      this.#open.clear()
      this.#read = this.#saved
      this.#store.changed()
    } else this.#handOut()
  }

  #handOut(): void {
    while (this.#waiting.length > 0) {
      let roomiest: Consumer | undefined
      for (const consumer of this.#consumers)
        if (consumer.room.left > (roomiest?.room.left ?? 0)) roomiest = consumer
      if (!roomiest) return
      const event = this.#waiting.shift() as Recorded
      roomiest.room.take(event, event)
      roomiest.queue.push(event)
      roomiest.wake()
    }
  }

  #startPump(filter: Filter): void {
    if (this.#pump) return
    this.#pump = new AbortController()
    const pump = this.#pump
    this.#run(filter, pump.signal).catch((error: unknown) => {
      if (this.#pump !== pump) return
      this.#pump = undefined
      for (const consumer of this.#consumers) {
        consumer.failure = unavailable(error)
        consumer.wake()
      }
    })
  }

  async #run(filter: Filter, signal: AbortSignal): Promise<void> {
    const aborted = () => this.#roomMade?.() // one listener: a signal looks at all of them for each further one
    signal.addEventListener('abort', aborted, { once: true })
    for await (const batch of this.#store.subscribe({ ...filter, after: cursorOf(this.#read), signal })) {
      if (signal.aborted) return
      for (const event of batch.events) {
        this.#open.add(positionOf(event.cursor))
        this.#waiting.push(event)
      }
      this.#read = positionOf(batch.cursor)
      this.#handOut()
      while (this.#waiting.length > 0 && !signal.aborted)
        await new Promise<void>((resolve) => (this.#roomMade = resolve))
    }
  }
}
