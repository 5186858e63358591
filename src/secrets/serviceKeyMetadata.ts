import { isAppError } from '../errors.ts'
import type { Keyring } from './keyring.ts'

interface Of {
  readonly env_id: string
  readonly service_key_id: string
}

const purposeOf = ({ service_key_id }: Of): string => `service key ${service_key_id}`

/** Seals the metadata of a service key for the log, bound to the key (I6). */
export const sealMetadata = (keyring: Keyring, of: Of, metadata: unknown): Promise<string> =>
  keyring.seal(of.env_id, purposeOf(of), JSON.stringify(metadata))

/** Unseals the metadata of a service key. Resolves with null without metadata or when the data key was destroyed. */
export const unsealMetadata = async (
  keyring: Keyring,
  of: Of,
  sealed: string | undefined,
): Promise<unknown> => {
  if (sealed === undefined) return null
  try {
    return JSON.parse(await keyring.unseal(of.env_id, purposeOf(of), sealed)) as unknown
  } catch (error) {
    if (isAppError(error, 'not_found')) return null
    throw error
  }
}
