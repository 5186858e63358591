import { createSecretKey } from 'node:crypto'
import { AppError } from '../errors.ts'
import { decrypt, encrypt } from './cipher.ts'
import type { Scope } from './wrappedKeys.ts'

const boundTo = (scope: Scope, id: string): Buffer =>
  Buffer.from(JSON.stringify(['svc transferred key', scope.env_id, scope.project_id ?? null, id]))

/** A key that two installations share for the transfer of an environment. It wraps the data keys in the file. */
export class TransferKey {
  readonly #key

  /** `bytes`: 32 random bytes. */
  constructor(bytes: Uint8Array) {
    this.#key = createSecretKey(bytes)
  }

  wrap(scope: Scope, id: string, dataKey: Uint8Array): string {
    return encrypt(this.#key, boundTo(scope, id), dataKey).toString('base64')
  }

  /** Throws `bad_request` for another transfer key, and for a wrapped key that was changed. */
  unwrap(scope: Scope, id: string, wrapped: string): Buffer {
    try {
      const bytes = decrypt(this.#key, boundTo(scope, id), Buffer.from(wrapped, 'base64'))
      if (bytes.length === 32) return bytes
    } catch {} // reported below
    throw new AppError(
      'bad_request',
      'The data keys of the file do not open: expected the key of its export, or the file was changed',
    )
  }
}
