import { bySystem } from '../../events/actor.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'
import { deleteEnv } from './deleteEnv.ts'

/**
 * Deletes the environments of deleted organizations. One is left when a node dies: `createEnv` and `deleteOrg` each look for
 * the other's fact only after their own is stored. Resolves with their number.
 */
export const deleteOrphanEnvs = async ({
  aggregates,
  views,
}: Pick<CommandDeps, 'aggregates' | 'views'>): Promise<number> => {
  const authenticator = { ended() {} } // each node learns about the end of the keys from the log
  let deleted = 0
  await views.settled('envs', 'orgs')
  for await (const { env_id, org_id, active } of views.envs.scan()) {
    if (!active || (await views.orgs.get(org_id))) continue
    if ((await aggregates.orgs.read(streamOf.org(org_id), ({ status }) => status)) !== 'deleted') continue
    await deleteEnv(
      { aggregates, views, authenticator },
      { env_id },
      { correlation_id: env_id, ...bySystem('purge') },
    )
    deleted++
  }
  return deleted
}
