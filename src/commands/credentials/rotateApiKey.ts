import { clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import type { Cause } from '../../events/event.ts'
import type { Caller, CommandDeps } from '../deps.ts'
import { findApiKey } from '../orgs/findTenant.ts'
import { changeApiKey } from './changeApiKey.ts'
import { createApiKey } from './createApiKey.ts'

/**
 * Creates an API key with the name and the permissions of another one, which expires `overlap_s` seconds from now, or at
 * its own earlier expiry. If the node dies in between, both keys are valid. Resolves with the id and the token of the new key. Rejects with `not_found`, and
 * with `conflict` for a key that is not valid any more.
 */
export const rotateApiKey = async (
  deps: Pick<CommandDeps, 'aggregates' | 'views' | 'keyring' | 'authenticator'>,
  { api_key_id, overlap_s }: { api_key_id: string; overlap_s: number },
  caller: Caller<Cause>,
): Promise<{ api_key_id: string; token: string }> => {
  const former = await findApiKey(deps, api_key_id)
  const left_s = former.expires_at ? (Date.parse(former.expires_at) - clock.now()) / 1000 : Infinity
  if (!former.enabled || left_s <= 0)
    throw new AppError(
      'conflict',
      `The API key ${api_key_id} is ${left_s <= 0 ? 'expired' : 'disabled'}: create a new one`,
    )
  const { env_id, name, permissions } = former
  const created = await createApiKey(deps, { env_id, name, permissions }, caller)
  if (overlap_s < left_s) await changeApiKey(deps, { api_key_id, expires_in: overlap_s }, caller.cause)
  return created
}
