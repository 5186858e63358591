import type { Cause } from '../../events/event.ts'
import type { CommandDeps } from '../deps.ts'
import { findEnv } from '../orgs/findTenant.ts'

/**
 * Destroys the data keys of an environment and its projects (DESIGN.md, Event streams). Secrets sealed so far can never
 * be read again, in any copy of the log. New secrets get new keys. Rejects with `not_found`.
 */
export const destroyDataKeys = async (
  deps: Pick<CommandDeps, 'views' | 'dataKeys'>,
  { env_id }: { env_id: string },
  cause: Cause,
): Promise<void> => {
  await findEnv(deps, env_id)
  await deps.dataKeys.destroy({ env_id }, { final: false }, { ...cause, env_id })
}
