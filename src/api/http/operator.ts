import { clock } from '../../clock.ts'
import type { Cause } from '../../events/event.ts'
import type { Logger } from '../../logger.ts'
import type { Keyring } from '../../secrets/keyring.ts'
import { unauthorized } from '../../access/credential.ts'
import { bearerOf } from './bearer.ts'
import type { OperatorSessions } from '../../commands/credentials/operatorSessions.ts'
import { newId } from '../../ids.ts'
import { Guesses } from './guesses.ts'

/** Wrong tokens of one address, on each node. */
const GUESSES = { perSecond: 1, burst: 60, what: 'Requests with a wrong operator token' }

/** The lifetime of a session in the dashboard: a day of work. */
const SESSION_MS = 12 * 60 * 60 * 1000

/** A session of the operator in the dashboard. `expires`: milliseconds since 1970. */
interface OperatorSession {
  readonly id: string
  readonly expires: number
}

/** What the cookie of a session proves: its id, its end, and the authentication code of the token. */
const sessionText = ({ id, expires }: OperatorSession, tokenMac: string): string =>
  `operator session ${id} ${expires} ${tokenMac}`

const SESSION_VALUE = /^([0-9a-f-]{36})\.(\d{1,15})\.([0-9a-f]{64})$/

interface Given {
  readonly tokens: readonly string[]
  readonly sessions: OperatorSessions
  readonly keyring: Keyring
  readonly logger: Pick<Logger, 'warn'>
}

/** The operator of the installation: a caller with the operator token. */
export class Operator {
  readonly #keyring: Keyring
  readonly #macs: readonly string[]
  readonly #sessions: OperatorSessions
  readonly #logger: Pick<Logger, 'warn'>
  readonly #guesses: Guesses

  /** `tokens`: during a rotation of the master key, also the one that is derived from the former key. */
  constructor({ tokens, sessions, keyring, logger }: Given) {
    this.#sessions = sessions
    this.#logger = logger
    this.#guesses = new Guesses({ ...GUESSES, logger })
    this.#keyring = keyring
    this.#macs = tokens.map((token) => keyring.macOf(token))
  }

  /**
   * Throws `unauthorized` unless the token is the operator's. The time it takes does not depend on the token. Wrong tokens
   * are logged and limited: an address with too many gets `rate_limit_exceeded`, also with the right one.
   */
  admit(authorization: string | undefined, { ip, request_id }: { ip: string; request_id: string }): void {
    const token = bearerOf(authorization)
    if (token === undefined) throw unauthorized()
    this.#guesses.check(ip, request_id)
    if (this.isToken(token)) return
    this.#guesses.count(ip, request_id)
    this.#logger.warn('A wrong operator token was refused', { ip, request_id })
    throw unauthorized()
  }

  /**
   * Returns a value that admits until it expires. It proves that its client had the token, and ends with the token or with
   * its sign-out; only the sign-out is stored.
   */
  newSession(token: string): { readonly value: string; readonly expires: number } {
    const session = { id: newId(), expires: clock.now() + SESSION_MS }
    const proof = this.#keyring.macOf(sessionText(session, this.#keyring.macOf(token)))
    return { value: `${session.id}.${session.expires}.${proof}`, expires: session.expires }
  }

  /** Resolves with the session of such a value; null if it does not admit. Rejects with `unavailable` without the log. */
  async sessionOf(value: string | undefined): Promise<OperatorSession | null> {
    const session = this.#proved(value)
    return session && !(await this.#sessions.isEnded(session.id)) ? session : null
  }

  /** Resolves when such a value admits on no node. Any other value is ignored. */
  async endSession(value: string | undefined, cause: Cause): Promise<void> {
    const session = this.#proved(value)
    if (session) await this.#sessions.end(session.id, cause)
  }

  #proved(value: string | undefined): OperatorSession | null {
    const [, id = '', expires = '0', proof = ''] = SESSION_VALUE.exec(value ?? '') ?? []
    const session = { id, expires: Number(expires) }
    if (session.expires <= clock.now()) return null
    return this.#macs.some((mac) => this.#keyring.proves(sessionText(session, mac), proof)) ? session : null
  }

  isToken(token: string): boolean {
    return this.#macs.filter((mac) => this.#keyring.proves(token, mac)).length > 0
  }
}
