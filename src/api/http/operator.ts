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
  readonly #mac: string

  constructor({ token, keyring }: { token: string; keyring: Keyring }) {
    this.#keyring = keyring
    this.#mac = keyring.macOf(token)
  }

  /** Throws `unauthorized` unless the token is the operator's. The time it takes does not depend on the token. */
  admit(authorization: string | undefined): void {
    const token = bearerOf(authorization)
    if (token === undefined || !this.isToken(token)) throw unauthorized()
  }

  isToken(token: string): boolean {
    return this.#keyring.proves(token, this.#mac)
  }
}
