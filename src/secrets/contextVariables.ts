import { AppError } from '../errors.ts'
import { MAX_VALUE_BYTES } from '../events/contextKey.ts'
import type { Keyring } from './keyring.ts'

interface Place {
  readonly env_id: string
  readonly project_id: string
}

/** Seals the value of a context variable for the log, bound to its project and key (I6). */
export const sealVariable = async (
  keyring: Keyring,
  { env_id, project_id }: Place,
  key: string,
  value: string,
): Promise<string> => {
  const bytes = Buffer.byteLength(value)
  if (bytes > MAX_VALUE_BYTES)
    throw new AppError('bad_request', `value: expected at most ${MAX_VALUE_BYTES} bytes, got ${bytes}`)
  if (!value.isWellFormed()) throw new AppError('bad_request', 'value: expected valid Unicode') // it is sealed as UTF-8
  return keyring.seal(env_id, purposeOf(key), value, project_id)
}

/** Unseals the value of a context variable. Rejects with `not_found` when its data key was destroyed. */
export const unsealVariable = (
  keyring: Keyring,
  { env_id, project_id }: Place,
  key: string,
  sealed: string,
): Promise<string> => keyring.unseal(env_id, purposeOf(key), sealed, project_id)

const purposeOf = (key: string): string => `context ${key}`
