import { setTimeout as delay } from 'node:timers/promises'
import type { Db } from 'mongodb'
import type { Version } from '../../ports/readModels.ts'
import { collectionName, dropCollection } from './collections.ts'
import { countsName } from './counts.ts'
import { ROW_MS } from './presence.ts'
import type { Registry } from './registry.ts'

/** L1: leaves time for readers on other nodes and for differences between clocks. */
const GRACE_MS = 3 * ROW_MS

interface Deps {
  readonly db: Db
  readonly registry: Registry
  readonly signal: AbortSignal
}

/**
 * Drops a version that no node reads. A crash leaves a mark or a collection without a row. The next removal completes
 * either.
 */
export const dropVersion = async (
  version: Version,
  { db, ...deps }: Deps,
  isUnread: () => Promise<boolean>,
): Promise<void> => {
  if (!(await forgetUnread(version, deps, isUnread))) return
  await dropCollection(db, countsName(version)) // first: an interrupted removal is found by its documents
  await dropCollection(db, collectionName(version))
}

/**
 * Marks a version, and forgets it after `GRACE_MS` unless a node has removed the mark. Resolves with whether nodes are
 * refused to read it from then on.
 */
export const forgetUnread = async (
  version: Version,
  { registry, signal }: Omit<Deps, 'db'>,
  isUnread: () => Promise<boolean>,
): Promise<boolean> => {
  if (!(await isUnread())) return false
  const mark = await registry.mark(version)
  await delay(GRACE_MS, undefined, { signal })
  if (await isUnread()) return registry.forget(version, mark)
  await registry.keep(version)
  return false
}
