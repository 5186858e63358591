import type { Version } from '../ports/readModels.ts'
import { nameOf } from './projection.ts'
import { servedOf } from './shadow.ts'

export interface Readers {
  /** The names of the versions that living nodes read. */
  readonly namesRead: () => Promise<ReadonlySet<string>>
  /** Removes the position that was reported of a version. */
  readonly forget?: (name: string) => Promise<void>
}

/**
 * Resolves with whether no living node reads the version. Its reported position is then removed, before the version is: a crash
 * in between must not leave the position. A node that keeps the version meanwhile reports its position again.
 */
export const freeVersion = async ({ namesRead, forget }: Readers, version: Version): Promise<boolean> => {
  if ((await namesRead()).has(nameOf(servedOf(version)))) return false
  await forget?.(nameOf(version))
  return true
}
