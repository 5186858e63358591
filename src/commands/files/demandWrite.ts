import { demand, type PermissionSet } from '../../access/permissions.ts'
import type { CommandDeps } from '../deps.ts'
import { fileAt } from './fileAt.ts'

/** Rejects with `forbidden` unless the permissions allow to create the file, or to update the one at the path. */
export const demandWrite = async (
  deps: Pick<CommandDeps, 'aggregates'>,
  permissions: PermissionSet,
  { env_id, path }: { env_id: string; path: string },
): Promise<void> => {
  const action = (await fileAt(deps, env_id, path)) ? 'update' : 'create'
  demand(permissions, { type: 'file', actions: [action], paths: [path] })
}
