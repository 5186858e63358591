import type { ReadModels } from '../ports/readModels.ts'
import { holderOf } from './lease.ts'
import type { Liveness } from './liveness.ts'

/**
 * svc 0.1.0 does not announce the versions that it reads. Its working projector holds this lease, whose name contains them.
 * Without a projector of that version, its nodes cannot read them anyway.
 */
const LEASE_OF_0_1 =
  'projectors runs@2 events@2 projects@1 builds@1 files@1 uploads@1 context_variables@1 orgs@2 envs@1 api_keys@2 sessions@1 service_keys@1 domains@1 workers@1 call_days@2 file_totals@1'

/** The names of the versions of read models that living nodes read. */
export const namesReadBy = async ({
  readModels,
  liveness,
}: {
  readModels: ReadModels
  liveness: Liveness
}): Promise<ReadonlySet<string>> => {
  const names = new Set(await liveness.announced())
  const holder = await holderOf(LEASE_OF_0_1, readModels)
  if (holder !== undefined && !liveness.isLost(holder))
    for (const name of LEASE_OF_0_1.split(' ').slice(1)) names.add(name)
  return names
}
