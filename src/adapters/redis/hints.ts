import { clock } from '../../clock.ts'
import { newId } from '../../ids.ts'
import type { Logger } from '../../logger.ts'
import { HINT_TOPICS, type Hints, type HintTopic } from '../../ports/hints.ts'
import { Listeners } from '../shared/listeners.ts'
import { type Address, parseAddress } from './address.ts'
import { Connection } from './connection.ts'

/** Hints that Redis has not accepted yet. Further hints are dropped. */
const MAX_IN_FLIGHT = 1000

/**
 * Opens hints over Redis pub/sub between the nodes of one `installation`. Resolves even if Redis is unavailable,
 * and connects when it is available. Rejects with `bad_request` for a URL or password that cannot work.
 */
export const openRedisHints = async (url: string, logger: Logger, installation = ''): Promise<Hints> => {
  const hints = new RedisHints(parseAddress(url), logger, installation)
  try {
    await hints.open()
  } catch (error) {
    await hints.close()
    throw error
  }
  return hints
}

/** A node delivers its own hints at once and without Redis; the copies that Redis returns are dropped. */
class RedisHints implements Hints {
  readonly #address: Address
  readonly #logger: Logger
  readonly #channels: string
  readonly #local = new Listeners()
  readonly #publisher: Connection
  readonly #subscriber: Connection
  readonly #origin = newId()
  #inFlight = 0
  #subscribing: Promise<void> | undefined
  #subscribed = false
  /** The time of the loss that was logged; null while Redis is available. */
  #lostAt: number | null = null
  #closed = false

  constructor(address: Address, logger: Logger, installation: string) {
    this.#channels = `${address.prefix}${installation}hints:`
    this.#address = address
    this.#logger = logger
    const onLost = (reason: string) => this.#lost(reason)
    this.#publisher = new Connection(address, { onReady: () => this.#back(), onLost })
    this.#subscriber = new Connection(address, {
      onReady: () => {
        this.#subscribing = this.#subscribe()
      },
      onLost: (reason) => {
        this.#subscribed = false
        this.#lost(reason)
      },
    })
    this.#subscriber.redis.on('message', (channel: string, message: string) => this.#hear(channel, message))
  }

  get connected(): boolean {
    return this.#subscribed && this.#publisher.ready
  }

  async open(): Promise<void> {
    await this.#publisher.open(this.#address.place)
    await this.#subscriber.open(this.#address.place)
    await this.#subscribing
  }

  publish(topic: HintTopic, text: string): void {
    this.#local.notify(topic, text)
    if (!this.#publisher.ready || this.#inFlight >= MAX_IN_FLIGHT) return
    this.#inFlight++
    this.#publisher.redis
      .publish(this.#channelOf(topic), `${this.#origin} ${text}`)
      .catch(() => {}) // a lost hint only costs time: every reader also polls
      .finally(() => this.#inFlight--)
  }

  on(topic: HintTopic, listener: (text: string) => void): () => void {
    return this.#local.add(topic, listener)
  }

  close(): Promise<void> {
    this.#closed = true
    this.#publisher.close()
    this.#subscriber.close()
    this.#local.clear()
    return Promise.resolve()
  }

  #channelOf(topic: HintTopic): string {
    return `${this.#channels}${topic}`
  }

  async #subscribe(): Promise<void> {
    try {
      await this.#subscriber.redis.subscribe(...HINT_TOPICS.map((topic) => this.#channelOf(topic)))
      this.#subscribed = true
      this.#back()
    } catch (error) {
      if (this.#subscriber.ready) this.#logger.warn('Redis refused to subscribe', { error: String(error) })
    }
  }

  #hear(channel: string, message: string): void {
    const topic = HINT_TOPICS.find((each) => this.#channelOf(each) === channel)
    if (topic && !message.startsWith(this.#origin)) {
      this.#local.notify(topic, message.slice(this.#origin.length + 1))
    }
  }

  #lost(reason: string): void {
    if (this.#lostAt !== null || this.#closed) return
    this.#lostAt = clock.monotonic()
    const { place } = this.#address
    this.#logger.warn(`Redis at ${place} is unavailable: nodes get no hints and poll instead`, { reason })
  }

  #back(): void {
    if (this.#lostAt === null || !this.connected) return
    const lasted_ms = Math.round(clock.monotonic() - this.#lostAt)
    this.#lostAt = null
    this.#logger.info(`Redis at ${this.#address.place} is available: nodes exchange hints again`, {
      lasted_ms,
    })
  }
}
