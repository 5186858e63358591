import { AppError } from '../errors.ts'
import type { Keyring } from './keyring.ts'

interface Place {
  readonly env_id: string
  readonly project_id: string
}

/** Bytes of a value: sealed, it remains within what a fact carries itself. */
export const MAX_VALUE_BYTES = 32 << 10

/** The value of a context variable as the log may contain it: bound to its project and key (I6). */
export const sealVariable = async (
  keyring: Keyring,
  { env_id, project_id }: Place,
  key: string,
  value: string,
): Promise<string> => {
  const bytes = Buffer.byteLength(value)
  if (bytes > MAX_VALUE_BYTES)
    throw new AppError('bad_request', `value: expected at most ${MAX_VALUE_BYTES} bytes, got ${bytes}`)
  return keyring.seal(env_id, purposeOf(key), value, project_id)
}

/** The value that was sealed. Rejects with `not_found` when its data key was destroyed. */
export const unsealVariable = (
  keyring: Keyring,
  { env_id, project_id }: Place,
  key: string,
  sealed: string,
): Promise<string> => keyring.unseal(env_id, purposeOf(key), sealed, project_id)

const purposeOf = (key: string): string => `context ${key}`
