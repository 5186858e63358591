import { AppError } from '../errors.ts'

export const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/

/** Returns the key if it is valid; throws `bad_request` that names it. */
export const keyFrom = (key: unknown, keyName: string): string => {
  if (typeof key === 'string' && IDEMPOTENCY_KEY.test(key)) return key
  throw new AppError('bad_request', `${keyName}: expected 1 to 255 visible ASCII characters`)
}

export const reusedKey = (keyName: string): AppError =>
  new AppError(
    'idempotency_key_reused',
    `${keyName}: was used for another request; a new request needs a new key`,
  )
