import {
  type AllStreamResolvedEvent,
  eventTypeFilter,
  excludeSystemEvents,
  type PersistentSubscriptionToAll,
  persistentSubscriptionToAllSettingsFromDefaults,
  START as FROM_START,
} from '@eventstore/db-client'
import { type Cursor, START } from '../../events/event.ts'
import { Backoff } from '../../loops/backoff.ts'
import type { Consuming, Delivery, Filter } from '../../ports/eventStore.ts'
import { readable } from '../../events/upcast.ts'
import { ConsumerRoom } from '../shared/consumerRoom.ts'
import { matcherOf } from '../shared/matching.ts'
import { clock } from '../../clock.ts'
import type { Connection, Generation } from './connection.ts'
import { appErrorOf, isClientWedged, isExistingGroup, isMissingGroup, silent } from './failures.ts'
import { GroupWatch } from './groupWatch.ts'
import type { Tail } from './tail.ts'
import { cursorOf, positionOf, recordedOf } from './wire.ts'

/** An event that is not acknowledged within this time is delivered again. */
const MESSAGE_TIMEOUT_MS = 60_000
/** High enough that an event is never parked: a consumer that cannot handle it receives it again. */
const MAX_RETRIES = 1_000_000
/** Events that wait in this process for a slow consumer. The connection holds the server back from sending more. */
const MAX_READ_AHEAD = 16
/** Time for the confirmation of a consumer, milliseconds. A busy server takes more than a second. */
const JOIN_MS = 5000
/** Time for the deletion of a group, milliseconds. */
const DROP_MS = 5000
const PAUSES = { firstMs: 20, longestMs: 1000 }
/** Acknowledgements get no reply, so the call stays open this long until they have been sent. */
const FLUSH_MS = 50

/**
 * Consumes a persistent subscription to `$all`. It reconnects whenever the subscription breaks; events after the
 * last checkpoint are then delivered again.
 */
export async function* consume(
  connection: Connection,
  tail: Tail,
  prefix: string,
  group: string,
  { from = START, inFlight, inFlightBytes, signal, ...filter }: Consuming,
): AsyncGenerator<Delivery> {
  const name = `${prefix}${group}`
  const matches = matcherOf(filter)
  const delivered = matcherOf(filter.types ? { types: filter.types } : {}) // the server knows no environments
  const stop = AbortSignal.any([signal, connection.closed])
  const backoff = new Backoff(PAUSES)
  while (!stop.aborted) {
    const generation = connection.current
    try {
      const begin = await beginOf(connection, generation, name)
      const room = new ConsumerRoom<EventId>({ inFlight, inFlightBytes })
      const joining = { connection, generation, tail, name, room, delivered, stop }
      for await (const { resolved, acks } of join(joining)) {
        backoff.reset()
        const recorded = resolved.event && recordedOf(resolved.event, prefix)
        if (recorded && recorded.cursor > begin && (!matches || matches(recorded)))
          yield deliveryOf(readable(recorded), resolved, acks)
        else acks.add(resolved)
      }
    } catch (error) {
      if (stop.aborted) return
      const failure = isMissingGroup(error)
        ? await create(connection, generation, name, prefix, filter, from)
        : error
      if (generation.gone.aborted || failure === undefined) continue
      if (isClientWedged(failure)) connection.renew()
      else if (!appErrorOf(failure).retryable) throw appErrorOf(failure)
    }
    await backoff.pause({ signal: stop })
  }
}

const deliveryOf = (event: Delivery['event'], resolved: AllStreamResolvedEvent, acks: Acks): Delivery => {
  let settled = false
  const settle = (as: 'add' | 'retry') => {
    if (settled) return
    settled = true
    acks[as](resolved)
  }
  return { event, ack: () => settle('add'), retry: () => settle('retry') }
}

/** The id of an event; undefined: it was deleted. */
type EventId = string | undefined

interface Joining {
  readonly connection: Connection
  readonly generation: Generation
  readonly tail: Tail
  readonly name: string
  readonly room: ConsumerRoom<EventId>
  /** Selects the events that the server delivers. */
  readonly delivered: ReturnType<typeof matcherOf>
  readonly stop: AbortSignal
}

async function* join({ connection, generation, tail, name, room, delivered, stop }: Joining) {
  const { client, gone } = generation
  const began = clock.monotonic()
  const subscription = client.subscribeToPersistentSubscriptionToAll(
    name,
    { bufferSize: room.most, requiresLeader: true },
    { highWaterMark: Math.min(room.most, MAX_READ_AHEAD) },
  )
  const acks = new Acks(subscription, room)
  subscription.on('error', () => {}) // an unhandled error after the end would end the process
  const leave = () => subscription.destroy()
  const unconfirmed = setTimeout(() => {
    connection.suspect(began)
    subscription.destroy(silent())
  }, JOIN_MS)
  subscription.once('confirmation', () => {
    clearTimeout(unconfirmed)
    connection.heard()
  })
  const watch = new GroupWatch(connection, generation, tail, {
    name,
    matches: delivered,
    hasRoom: () => subscription.readableLength === 0 && acks.hasRoom,
    isIdle: () => acks.isIdle,
    onDeaf: () => subscription.destroy(silent()),
  })
  stop.addEventListener('abort', leave, { once: true })
  gone.addEventListener('abort', leave, { once: true })
  try {
    if (stop.aborted) return
    for await (const resolved of subscription) {
      watch.heard(resolved.event?.position)
      connection.heard()
      acks.delivered(resolved)
      yield { resolved, acks }
      await acks.memoryFreed()
    }
  } finally {
    watch.stop()
    clearTimeout(unconfirmed)
    stop.removeEventListener('abort', leave)
    gone.removeEventListener('abort', leave)
    void acks.flush()
    setTimeout(() => subscription.unsubscribe().catch(() => {}), FLUSH_MS).unref()
  }
}

/** Sends the acknowledgements of one turn of the event loop in one message. */
class Acks {
  readonly #subscription: PersistentSubscriptionToAll
  /** The ids of the events without an acknowledgement. An event is delivered again after its timeout, and counts once. */
  readonly #room: ConsumerRoom<EventId>
  #freed: () => void = () => {}
  #waiting: AllStreamResolvedEvent[] = []
  #due: NodeJS.Immediate | undefined

  constructor(subscription: PersistentSubscriptionToAll, room: ConsumerRoom<EventId>) {
    this.#subscription = subscription
    this.#room = room
    subscription.once('close', () => this.#freed())
  }

  get hasRoom(): boolean {
    return this.#room.left > 0
  }

  get isIdle(): boolean {
    return this.#room.isEmpty
  }

  /** Resolves when a further delivery has memory, or when the subscription has ended. The server limits their number. */
  async memoryFreed(): Promise<void> {
    while (this.#room.isHeavy && !this.#subscription.destroyed)
      await new Promise<void>((resolve) => (this.#freed = resolve))
  }

  delivered({ event }: AllStreamResolvedEvent): void {
    this.#room.take(event?.id, event)
  }

  add(resolved: AllStreamResolvedEvent): void {
    this.#free(resolved)
    this.#waiting.push(resolved)
    this.#due ??= setImmediate(() => void this.flush())
  }

  retry(resolved: AllStreamResolvedEvent): void {
    this.#free(resolved)
    this.#subscription.nack('retry', 'to be delivered again', resolved).catch(() => {})
  }

  #free({ event }: AllStreamResolvedEvent): void {
    this.#room.free(event?.id)
    this.#freed()
  }

  async flush(): Promise<void> {
    clearImmediate(this.#due)
    this.#due = undefined
    const events = this.#waiting.splice(0)
    if (events.length === 0) return
    await this.#subscription.ack(...events).catch(() => {}) // events without an ack are delivered again
  }
}

/** Returns the cursor after which the group begins. The server itself begins with the event at that cursor. */
const beginOf = async (connection: Connection, generation: Generation, name: string): Promise<Cursor> => {
  try {
    const info = await connection.reply(({ client }) => client.getPersistentSubscriptionToAllInfo(name), {
      generation,
    })
    const { startFrom } = info.settings
    return typeof startFrom === 'object' ? cursorOf(startFrom) : START
  } catch (error) {
    if (isMissingGroup(error)) throw error
    return START // a persistent failure is reported when the subscription starts; one extra event does no harm
  }
}

/** Creates the group. Resolves with the error, or undefined. */
const create = (
  connection: Connection,
  generation: Generation,
  name: string,
  prefix: string,
  { types }: Filter,
  from: Cursor,
): Promise<unknown> => {
  const position = positionOf(from)
  const settings = persistentSubscriptionToAllSettingsFromDefaults({
    startFrom: position === 'start' ? FROM_START : position,
    resolveLinkTos: false,
    messageTimeout: MESSAGE_TIMEOUT_MS,
    maxRetryCount: MAX_RETRIES,
    checkPointAfter: 1000,
    checkPointLowerBound: 1,
    checkPointUpperBound: 500,
    liveBufferSize: 2000,
    readBatchSize: 200,
    historyBufferSize: 2000,
  })
  const filter = types
    ? eventTypeFilter({ regex: `^(?:${types.map((type) => escape(prefix + type)).join('|')})$` })
    : prefix === ''
      ? excludeSystemEvents()
      : eventTypeFilter({ prefixes: [prefix] })
  return connection
    .reply(({ client }) => client.createPersistentSubscriptionToAll(name, settings, { filter }), {
      generation,
    })
    .then(
      () => undefined,
      (error: unknown) => (isExistingGroup(error) ? undefined : error),
    )
}

/** Deletes a group. It does not exist if another node was faster. */
export const dropGroup = async (connection: Connection, name: string): Promise<void> => {
  try {
    await connection.reply(({ client }) => client.deletePersistentSubscriptionToAll(name), { ms: DROP_MS })
  } catch (error) {
    if (!isMissingGroup(error)) throw appErrorOf(error)
  }
}

const escape = (text: string): string => text.replace(/[.-]/g, '\\$&')
