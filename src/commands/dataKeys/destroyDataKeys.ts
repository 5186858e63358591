import type { Cause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'
import { findEnv } from '../orgs/findTenant.ts'

/**
 * Destroys the data keys of an environment and its projects (DESIGN.md, Event streams). Secrets sealed so far can never
 * be read again, in any copy of the log. New secrets get new keys. The private keys of certificates end with their custom domains
 * only: no caller can read or replace them, and a domain without its key would serve nobody. Rejects with `not_found`.
 */
export const destroyDataKeys = async (
  deps: Pick<CommandDeps, 'views' | 'aggregates' | 'dataKeys'>,
  { env_id }: { env_id: string },
  cause: Cause,
): Promise<void> => {
  const { org_id } = await findEnv(deps, env_id)
  const isDomain = (id: string): Promise<boolean> =>
    deps.aggregates.domains.read(streamOf.domains(org_id), (domains) => domains.has(id))
  await deps.dataKeys.destroy({ env_id }, { final: false, keeps: isDomain }, { ...cause, env_id })
}
