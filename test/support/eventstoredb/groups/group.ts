import { clock } from '../../../../src/clock.ts'
import { type Resolved, resolve } from '../links.ts'
import type { Node } from '../node.ts'
import { groupDropped, groupFull, type Refusal } from '../refusals.ts'
import { Checkpoints } from './checkpoints.ts'
import { type Consumer, hasRoom } from './consumer.ts'
import type { Definition } from './definition.ts'
import { deliveryMessage } from './messages.ts'
import { Parked } from './parked.ts'
import { Progress } from './progress.ts'
import { Source } from './source.ts'

/** An event on its way through the group. */
interface Message {
  readonly resolved: Resolved
  /** The id in its acknowledgement. */
  readonly id: string
  /** Its place in the source; undefined for a parked event. */
  readonly place: number | undefined
  retries: number
}

interface HandedOut {
  readonly message: Message
  readonly consumer: Consumer
  readonly dueAt: number
}

export type Action = 'park' | 'retry' | 'skip' | 'stop'

/**
 * A persistent subscription. Its consumers share the events; each event is delivered until it is acknowledged.
 * G1: the checkpoint never passes an unhandled event. It lags, so events after the stored one are delivered again.
 * G2: a consumer never gets more events than fit in its buffer.
 * G3: an event that was delivered too often is parked.
 */
export class Group {
  readonly definition: Definition
  readonly parked: Parked
  readonly consumers: Consumer[] = []
  readonly #node: Node
  readonly #source: Source
  readonly #checkpoints: Checkpoints
  readonly #progress: Progress
  readonly #handedOut = new Map<string, HandedOut>()
  #retries: Message[] = []
  #nextConsumer = 0
  #closed = false
  #retryDue: NodeJS.Timeout | undefined
  readonly #leaveLog: () => void

  constructor(node: Node, definition: Definition) {
    const { log, misbehaviour } = node
    this.#node = node
    this.definition = definition
    this.parked = new Parked(log, definition)
    this.#checkpoints = new Checkpoints(log, definition)
    this.#progress = new Progress(this.#checkpoints, definition.settings, () => misbehaviour.checkpointsHeld)
    this.#source = new Source(log, definition, this.#checkpoints.last, this.#progress)
    const leave = [
      log.onChange(() => this.#handOut()),
      misbehaviour.onForget(() => [...this.consumers].forEach((consumer) => this.leave(consumer))),
    ]
    this.#leaveLog = () => leave.forEach((stop) => stop())
  }

  get lastCheckpoint(): number | undefined {
    return this.#checkpoints.last
  }

  get counts(): { readonly inFlight: number; readonly retrying: number } {
    return { inFlight: this.#handedOut.size, retrying: this.#retries.length }
  }

  join(consumer: Consumer): Refusal | undefined {
    const { maxSubscribers } = this.definition.settings
    if (maxSubscribers > 0 && this.consumers.length >= maxSubscribers) return groupFull(this.definition)
    this.consumers.push(consumer)
    return undefined
  }

  /** Unacknowledged events go to another consumer. */
  leave(consumer: Consumer): void {
    const at = this.consumers.indexOf(consumer)
    if (at === -1) return
    this.consumers.splice(at, 1)
    const left = [...this.#handedOut.values()].filter((one) => one.consumer === consumer)
    for (const one of left) this.#retry(this.#takeBack(one), 'consumer left')
    this.#handOut()
  }

  ack(consumer: Consumer, ids: readonly string[]): void {
    if (this.#closed) return
    for (const id of ids) {
      const handedOut = this.#handedOut.get(id)
      if (handedOut?.consumer === consumer) this.#done(this.#takeBack(handedOut))
    }
    this.#handOut()
  }

  nack(consumer: Consumer, ids: readonly string[], action: Action, reason: string): void {
    if (this.#closed) return
    for (const id of ids) {
      const handedOut = this.#handedOut.get(id)
      if (handedOut?.consumer !== consumer || action === 'stop') continue // stop does nothing: the event is delivered again after its timeout
      const message = this.#takeBack(handedOut)
      if (action === 'retry') this.#retry(message, reason)
      else {
        if (action === 'park') this.parked.add(message.resolved, reason)
        this.#done(message)
      }
    }
    this.#handOut()
  }

  /** Delivers parked events again and removes them from the parked events. */
  replay(limit: number): void {
    for (const link of this.parked.take(limit)) {
      const resolved = resolve(this.#node.log, link, true)
      this.#retries.push({ resolved, id: link.id, place: undefined, retries: 0 })
    }
    this.#handOut()
  }

  /** Ends the group on this node and notifies its consumers. */
  close(): void {
    this.die()
    for (const { call } of this.consumers.splice(0)) call.emit('error', groupDropped(this.definition))
  }

  /** Ends it like a killed node: no notification, no checkpoint. */
  die(): void {
    this.#closed = true
    this.#leaveLog()
    this.#progress.stop()
    clearTimeout(this.#retryDue)
  }

  /** A group that is created again under the same name has no history. */
  forget(): void {
    this.#checkpoints.remove()
    this.parked.remove()
  }

  #handOut(): void {
    if (this.#closed) return
    const silence = this.#node.misbehaviour.silenceOf('groups')
    if (silence) return void silence.then(() => this.#handOut())
    while (this.consumers.some(hasRoom)) {
      const message = this.#retries.shift() ?? this.#take()
      if (!message) return
      if (this.#handedOut.has(message.id)) this.#done(message) // the server also skips an id that is in two streams
      else this.#give(message, this.#consumerFor(message))
    }
  }

  #take(): Message | undefined {
    const taken = this.#source.next()
    if (!taken) return undefined
    const { stored, place } = taken
    const resolved = resolve(this.#node.log, stored, this.definition.settings.resolveLinks)
    return { resolved, id: stored.id, place, retries: 0 }
  }

  #consumerFor({ resolved: { event } }: Message): Consumer {
    const { strategy } = this.definition.settings
    const start =
      strategy === 'DispatchToSingle'
        ? 0
        : strategy === 'Pinned'
          ? hashOf(event?.stream ?? '')
          : this.#nextConsumer++
    const { length } = this.consumers
    const inTurn = this.consumers.map((_, at) => this.consumers[(start + at) % length] as Consumer)
    return inTurn.find(hasRoom) as Consumer // G2: a consumer has room, otherwise no event was taken
  }

  #give(message: Message, consumer: Consumer): void {
    const { messageTimeoutMs } = this.definition.settings
    const dueAt = clock.monotonic() + (messageTimeoutMs || Infinity)
    consumer.inFlight++
    consumer.total++
    this.#handedOut.set(message.id, { message, consumer, dueAt })
    this.#watch()
    consumer.call.write(deliveryMessage(message.resolved, message.retries))
  }

  #takeBack(handedOut: HandedOut): Message {
    this.#handedOut.delete(handedOut.message.id)
    handedOut.consumer.inFlight--
    return handedOut.message
  }

  #retry(message: Message, reason: string): void {
    message.retries++
    if (message.retries > this.definition.settings.maxRetries) {
      this.parked.add(message.resolved, reason) // G3
      return this.#done(message)
    }
    this.#retries.push(message)
    this.#retries.sort((a, b) => (a.place ?? Infinity) - (b.place ?? Infinity))
  }

  #done({ place }: Message): void {
    if (place !== undefined) this.#progress.done(place)
  }

  /** The event that was delivered first times out first. */
  #watch(): void {
    const [first] = this.#handedOut.values()
    if (this.#retryDue || !first || first.dueAt === Infinity) return
    const waitMs = Math.max(1, first.dueAt - clock.monotonic())
    this.#retryDue = setTimeout(() => this.#retryInTime(), waitMs).unref()
  }

  #retryInTime(): void {
    this.#retryDue = undefined
    const now = clock.monotonic()
    const late = [...this.#handedOut.values()].filter(({ dueAt }) => dueAt <= now)
    for (const one of late) this.#retry(this.#takeBack(one), 'timeout')
    this.#handOut()
    this.#watch()
  }
}

const hashOf = (text: string): number => {
  let hash = 0
  for (let at = 0; at < text.length; at++) hash = (hash * 31 + text.charCodeAt(at)) >>> 0
  return hash
}
