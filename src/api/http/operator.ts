import { fromAddress } from '../../events/actor.ts'
import type { Cause } from '../../events/event.ts'
import type { Logger } from '../../logger.ts'
import type { Keyring } from '../../secrets/keyring.ts'
import { unauthorized } from '../../access/credential.ts'
import { bearerOf } from './bearer.ts'
import { Guesses } from './guesses.ts'

/** A request of the operator. */
interface Requested {
  readonly request_id: string
  readonly ip: string
  readonly traceparent: string | undefined
}

/** The cause that facts of an operator's request record. */
export const operatorCause = ({ request_id, ip, traceparent }: Requested): Cause => ({
  correlation_id: request_id,
  actor: 'operator',
  actor_type: 'operator',
  ...fromAddress(ip),
  ...(traceparent !== undefined && { traceparent }),
})

/** Wrong tokens of one address, on each node. */
const GUESSES = { perSecond: 1, burst: 60, what: 'Requests with a wrong operator token' }

interface Given {
  readonly tokens: readonly string[]
  readonly keyring: Keyring
  readonly logger: Pick<Logger, 'warn'>
}

/** The operator of the installation: a caller with the operator token. */
export class Operator {
  readonly #keyring: Keyring
  readonly #macs: readonly string[]
  readonly #logger: Pick<Logger, 'warn'>
  readonly #guesses: Guesses

  /** `tokens`: during a rotation of the master key, also the one that is derived from the former key. */
  constructor({ tokens, keyring, logger }: Given) {
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

  isToken(token: string): boolean {
    return this.#macs.filter((mac) => this.#keyring.proves(token, mac)).length > 0
  }
}
