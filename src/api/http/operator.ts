import type { Cause } from '../../events/event.ts'
import type { Keyring } from '../../secrets/keyring.ts'
import { unauthorized } from '../../access/credential.ts'
import { bearerOf } from './bearer.ts'

/** The cause that facts of an operator's request record. */
export const operatorCause = (request_id: string): Cause => ({
  correlation_id: request_id,
  actor: 'operator',
})

/** The operator of the installation: a caller with the operator token. */
export class Operator {
  readonly #keyring: Keyring
  readonly #macs: readonly string[]

  /** `tokens`: during a rotation of the master key, also the one that is derived from the former key. */
  constructor({ tokens, keyring }: { tokens: readonly string[]; keyring: Keyring }) {
    this.#keyring = keyring
    this.#macs = tokens.map((token) => keyring.macOf(token))
  }

  /** Throws `unauthorized` unless the token is the operator's. The time it takes does not depend on the token. */
  admit(authorization: string | undefined): void {
    const token = bearerOf(authorization)
    if (token === undefined || !this.isToken(token)) throw unauthorized()
  }

  isToken(token: string): boolean {
    return this.#macs.filter((mac) => this.#keyring.proves(token, mac)).length > 0
  }
}
