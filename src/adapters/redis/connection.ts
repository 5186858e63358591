import { isIP } from 'node:net'
import { Redis, ReplyError } from 'ioredis'
import { AppError, messageOf } from '../../errors.ts'
import { Backoff } from '../../loops/backoff.ts'
import { withDeadline } from '../../loops/deadline.ts'
import type { Address } from './address.ts'

/** Time limit of a connection attempt, and then of the first reply of Redis. */
const CONNECT_TIMEOUT_MS = 1000
/** Pauses between attempts to connect. */
const PAUSES = { firstMs: 75, longestMs: 1500 }
/** Interval of checks. A connection is replaced if the reply takes longer than `CHECK_TIMEOUT_MS`. */
const CHECK_EVERY_MS = 2000
const CHECK_TIMEOUT_MS = 1000

export interface ConnectionEvents {
  /** Called after every connection and reconnection to a server that accepts writes. */
  readonly onReady: () => void
  /** Called when the connection is lost and at every failed attempt. */
  readonly onLost: (reason: string) => void
}

/**
 * A connection to Redis that reconnects by itself. C1: no command is queued or sent twice; without a connection it
 * fails at once. C2: a silent server is detected by checks, because TCP alone may take minutes. C3: a replica is not used.
 * After a failover, the former primary may keep its connections, and the address leads to the new one.
 */
export class Connection {
  readonly redis: Redis
  readonly #checks: NodeJS.Timeout
  /** A write that changes nothing, because the key never exists. It needs no right that the rates do not need. */
  readonly #writeNothing: () => Promise<unknown>
  readonly #lost: () => void
  readonly #pauses = new Backoff(PAUSES)
  /** Whether the server has accepted a write of this connection. */
  #isProven = false
  #proving: Promise<void> | undefined
  #greeting: NodeJS.Timeout | undefined
  #lastError: Error | undefined
  /** May also be set on a ready connection: with a wrong database number ioredis continues in database 0. */
  #refusal: Error | undefined
  #closed = false

  constructor(
    { host, port, username, password, db, tls, prefix }: Address,
    { onReady, onLost }: ConnectionEvents,
  ) {
    this.redis = new Redis({
      host,
      port,
      db,
      ...(username !== undefined && { username }),
      ...(password !== undefined && { password }),
      // TLS has no server name for an IP address, and Node.js refuses one. It checks the certificate against the address.
      ...(tls && { tls: isIP(host) ? {} : { servername: host } }),
      lazyConnect: true,
      connectTimeout: CONNECT_TIMEOUT_MS,
      enableOfflineQueue: false, // C1
      autoResendUnfulfilledCommands: false, // C1
      maxRetriesPerRequest: 0, // C1
      autoResubscribe: false, // subscribers subscribe in `onReady`
      reconnectOnError: ({ message }) => isOfReplica(message), // C3
      retryStrategy: () => this.#pauses.next(),
    })
    this.#writeNothing = () => this.redis.set(`${prefix}rate:`, '', 'PX', 1, 'XX')
    this.redis.on('error', (error: Error) => {
      this.#lastError = error
      if (REFUSALS.test(error.message)) this.#refusal = error
    })
    this.redis.on('connect', () => {
      this.#greeting = setTimeout(() => this.redis.disconnect(true), CONNECT_TIMEOUT_MS) // C2
    })
    this.redis.on('ready', () => {
      clearTimeout(this.#greeting)
      this.#proving = this.#prove(onReady)
    })
    this.#lost = () => {
      clearTimeout(this.#greeting)
      this.#isProven = false
      onLost(this.#lastError ? messageOf(this.#lastError) : 'it does not answer')
    }
    this.redis.on('close', this.#lost)
    this.redis.on('end', () => {
      if (!this.#closed) this.#lost() // Node.js refused to connect: ioredis reports no `close` and does not try again
    })
    this.#checks = setInterval(() => void this.#check(), CHECK_EVERY_MS).unref()
  }

  get ready(): boolean {
    return !this.#closed && this.#isProven && this.redis.status === 'ready'
  }

  /** Waits for the first attempt; later attempts are automatic. Rejects with `bad_request` if they cannot succeed. */
  async open(place: string): Promise<void> {
    await this.redis.connect().catch(() => {}) // the `error` event has reported the reason
    await this.#proving
    if (this.#refusal) {
      const message = `SVC_REDIS: ${place} refused user, password or database: check them in the URL`
      throw new AppError('bad_request', message, { cause: this.#refusal })
    }
  }

  close(): void {
    this.#closed = true
    clearInterval(this.#checks)
    this.redis.disconnect()
  }

  async #prove(onReady: () => void): Promise<void> {
    if (!(await this.#answers(this.#writeNothing()))) return this.#lost()
    this.#isProven = true
    this.#lastError = undefined
    this.#pauses.reset()
    onReady()
  }

  async #check(): Promise<void> {
    if (!this.ready) return
    const refusesWrites = this.redis.mode === 'subscriber' // only before Redis 6
    await this.#answers(refusesWrites ? this.redis.ping() : this.#writeNothing())
  }

  /** Whether the server answers and is no replica. If not, the connection is replaced. */
  async #answers(answer: Promise<unknown>): Promise<boolean> {
    try {
      await answerOf(CHECK_TIMEOUT_MS, answer)
      return true
    } catch (error) {
      const message = messageOf(error)
      if (isOfReplica(message)) this.#lastError = new Error('it is a replica, which refuses writes')
      else if (error instanceof ReplyError) return true // a full disk, or no right: it answers
      else if (this.redis.status === 'ready') this.redis.disconnect(true) // C2
      return false
    }
  }
}

/** The answer of a replica to a write. */
const isOfReplica = (message: string): boolean => message.includes('READONLY')

/** Redis names the kind of an error in its first words. */
const REFUSALS = /^(NOAUTH|WRONGPASS|NOPERM|ERR invalid password|ERR AUTH|ERR Client sent AUTH|ERR DB index)/

/** Settles as the answer of Redis does; rejects with `unavailable` when it takes longer. */
export const answerOf = <T>(ms: number, answer: Promise<T>): Promise<T> =>
  withDeadline(ms, answer, () => new AppError('unavailable', `Redis did not answer within ${ms} ms`))
