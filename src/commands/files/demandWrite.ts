import { demand, type PermissionSet } from '../../access/permissions.ts'
import type { CommandDeps } from '../deps.ts'
import { fileAt } from './fileAt.ts'

/** The permissions of a writer. Null: a deployed function, which may write every file of its environment. */
export type WriteRights = PermissionSet | null

/** Throws `forbidden` unless the rights allow the action on the file at the path. */
export const demandAction = (rights: WriteRights, path: string, action: 'create' | 'update'): void => {
  if (rights) demand(rights, { type: 'file', actions: [action], paths: [path] })
}

/**
 * Rejects with `forbidden` unless the rights allow to create the file, or to update the one at the path. It spares the
 * content of a refused writer; the append decides.
 */
export const demandWrite = async (
  deps: Pick<CommandDeps, 'aggregates'>,
  rights: WriteRights,
  { env_id, path }: { env_id: string; path: string },
): Promise<void> => {
  if (rights) demandAction(rights, path, (await fileAt(deps, env_id, path)) ? 'update' : 'create')
}
