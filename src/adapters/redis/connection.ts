import { isIP } from 'node:net'
import { Redis } from 'ioredis'
import { AppError, messageOf } from '../../errors.ts'
import { jittered, pauseAfter } from '../../loops/backoff.ts'
import { withDeadline } from '../../loops/deadline.ts'
import type { Address } from './address.ts'

/** Time limit of a connection attempt, and then of the first reply of Redis. */
const CONNECT_TIMEOUT_MS = 1000
/** Pauses between attempts to connect. */
const PAUSES = { firstMs: 75, longestMs: 1500 }
/** Interval of pings. A connection is replaced if the reply takes longer than `CHECK_TIMEOUT_MS`. */
const CHECK_EVERY_MS = 2000
const CHECK_TIMEOUT_MS = 1000

export interface ConnectionEvents {
  /** Called after every connection and reconnection. */
  readonly onReady: () => void
  /** Called when the connection is lost and at every failed attempt. */
  readonly onLost: (reason: string) => void
}

/**
 * A connection to Redis that reconnects by itself. C1: no command is queued or sent twice; without a connection it
 * fails at once. C2: a silent server is detected by pings, because TCP alone may take minutes.
 */
export class Connection {
  readonly redis: Redis
  readonly #checks: NodeJS.Timeout
  #greeting: NodeJS.Timeout | undefined
  #lastError: Error | undefined
  /** May also be set on a ready connection: with a wrong database number ioredis continues in database 0. */
  #refusal: Error | undefined
  #closed = false

  constructor({ host, port, username, password, db, tls }: Address, { onReady, onLost }: ConnectionEvents) {
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
      // After a failover, the former primary may keep its connections, and the address leads to the new one.
      reconnectOnError: ({ message }) => message.includes('READONLY'),
      retryStrategy: (tries) => jittered(pauseAfter(tries - 1, PAUSES)),
    })
    this.redis.on('error', (error: Error) => {
      this.#lastError = error
      if (REFUSALS.test(error.message)) this.#refusal = error
    })
    this.redis.on('connect', () => {
      this.#greeting = setTimeout(() => this.redis.disconnect(true), CONNECT_TIMEOUT_MS) // C2
    })
    this.redis.on('ready', () => {
      clearTimeout(this.#greeting)
      this.#lastError = undefined
      onReady()
    })
    const lost = (): void => {
      clearTimeout(this.#greeting)
      onLost(this.#lastError ? messageOf(this.#lastError) : 'it does not answer')
    }
    this.redis.on('close', lost)
    this.redis.on('end', () => {
      if (!this.#closed) lost() // Node.js refused to connect: ioredis reports no `close` and does not try again
    })
    this.#checks = setInterval(() => void this.#check(), CHECK_EVERY_MS).unref()
  }

  get ready(): boolean {
    return !this.#closed && this.redis.status === 'ready'
  }

  /** Waits for the first attempt; later attempts are automatic. Rejects with `bad_request` if they cannot succeed. */
  async open(place: string): Promise<void> {
    await this.redis.connect().catch(() => {}) // the `error` event has reported the reason
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

  async #check(): Promise<void> {
    if (!this.ready) return
    const alive = await answerOf(CHECK_TIMEOUT_MS, this.redis.ping()).catch(() => false)
    if (alive === false && this.ready) this.redis.disconnect(true) // C2
  }
}

/** Redis names the kind of an error in its first words. */
const REFUSALS = /^(NOAUTH|WRONGPASS|NOPERM|ERR invalid password|ERR AUTH|ERR Client sent AUTH|ERR DB index)/

/** Settles as the answer of Redis does; rejects with `unavailable` when it takes longer. */
export const answerOf = <T>(ms: number, answer: Promise<T>): Promise<T> =>
  withDeadline(ms, answer, () => new AppError('unavailable', `Redis did not answer within ${ms} ms`))
