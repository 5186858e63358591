import { BoundedMap } from '../../boundedMap.ts'
import { clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import type { Logger } from '../../logger.ts'
import { networkOf } from '../../ports/trustedProxies.ts'

/** Addresses whose guesses are remembered; an attacker with more of them is limited by nothing here. */
const ADDRESSES = 10_000
/** An address over its limit is logged once in this time. */
const REPORT_EVERY_MS = 60_000

/** Requests of one address without a valid credential. Each costs a hash and a look-up in the read models. */
export const CREDENTIAL_GUESSES = {
  perSecond: 10,
  burst: 100,
  what: 'Requests without a valid credential',
}

/** Names of a TLS proxy that are no custom domains: any client of the proxy can invent them. */
export const UNKNOWN_NAMES = { perSecond: 100, burst: 1000, what: 'Asks for unknown domains' }

interface Options {
  /** Guesses of one address: `perSecond` on average, `burst` at once. */
  readonly perSecond: number
  readonly burst: number
  /** The subject of the log line, such as "Requests without a valid credential". */
  readonly what: string
  readonly logger: Pick<Logger, 'warn'>
  /** By default the monotonic clock. */
  readonly monotonic?: () => number
}

interface Guesser {
  /** The time until which the guesses are counted (GCRA), monotonic milliseconds. */
  readonly until: number
  readonly reported: number
}

/** Limits the guesses of each address on this node, so that attempts cost the service little. */
export class Guesses {
  readonly #intervalMs: number
  readonly #toleranceMs: number
  readonly #options: Options
  readonly #guessers = new BoundedMap<string, Guesser>(ADDRESSES)

  constructor(options: Options) {
    this.#options = options
    this.#intervalMs = 1000 / options.perSecond
    this.#toleranceMs = this.#intervalMs * options.burst
  }

  /** Throws `rate_limit_exceeded` if the address has no guess left. */
  check(address: string, request_id?: string): void {
    const network = networkOf(address)
    const guesser = this.#guessers.get(network)
    const now = this.#now()
    const overMs = (guesser?.until ?? now) + this.#intervalMs - now - this.#toleranceMs
    if (guesser === undefined || overMs <= 0) return
    const { what, logger } = this.#options
    if (now - guesser.reported >= REPORT_EVERY_MS) {
      this.#guessers.set(network, { ...guesser, reported: now })
      logger.warn(`${what}: the address has sent too many and is refused for some time`, {
        address,
        request_id,
      })
    }
    throw new AppError('rate_limit_exceeded', `${what}: this address has sent too many, try again later`, {
      data: { retryAfter: Math.ceil(overMs / 1000) },
    })
  }

  /** Counts a guess that was wrong. Throws `rate_limit_exceeded` like `check`. */
  count(address: string, request_id?: string): void {
    this.check(address, request_id)
    const network = networkOf(address)
    const { until = 0, reported = -Infinity } = this.#guessers.get(network) ?? {}
    this.#guessers.set(network, { until: Math.max(until, this.#now()) + this.#intervalMs, reported })
  }

  #now(): number {
    return this.#options.monotonic?.() ?? clock.monotonic()
  }
}
