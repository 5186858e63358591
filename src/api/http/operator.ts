import type { Keyring } from '../../secrets/keyring.ts'
import { bearerOf, unauthorized } from './bearer.ts'

/** Who runs the installation: whoever has the operator token. */
export class Operator {
  readonly #keyring: Keyring
  readonly #mac: string

  constructor({ token, keyring }: { token: string; keyring: Keyring }) {
    this.#keyring = keyring
    this.#mac = keyring.macOf(token)
  }

  /** Throws `unauthorized` unless the token is the operator's; the time it takes does not tell how far it was right. */
  admit(authorization: string | undefined): void {
    const token = bearerOf(authorization)
    if (token === undefined || !this.#keyring.proves(token, this.#mac)) throw unauthorized()
  }
}
