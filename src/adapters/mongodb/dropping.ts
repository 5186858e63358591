import { setTimeout as delay } from 'node:timers/promises'
import type { Db } from 'mongodb'
import { elapsedMs, instantNow } from '../../clock.ts'
import type { Version } from '../../ports/readModels.ts'
import { collectionName, dropCollection } from './collections.ts'
import { countsName } from './counts.ts'
import { ask } from './failures.ts'
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
  if (await forgetUnread(version, deps, isUnread)) await dropForgotten(version, { db, ...deps })
}

/**
 * Drops what an interrupted removal has left of a version without a row, which is about to be created: documents without
 * their counts. The row is read again after the collections: one that another node creates has a row before it has these.
 */
export const dropLeft = async (version: Version, deps: Omit<Deps, 'signal'>): Promise<void> => {
  const names = [countsName(version), collectionName(version)]
  const left = deps.db.listCollections({ name: { $in: names } }, { nameOnly: true })
  if ((await ask(() => left.toArray())).length > 0) await dropForgotten(version, deps)
}

const dropForgotten = async (
  version: Version,
  { db, registry }: Pick<Deps, 'db' | 'registry'>,
): Promise<void> => {
  // The counts are the first: an interrupted removal is found by its documents.
  for (const name of [countsName(version), collectionName(version)])
    if (await isForgotten(version, registry)) await dropCollection(db, name)
}

/** Whether a version has no row now: another node may create it again, also while this process is stopped. */
const isForgotten = async (version: Version, registry: Registry): Promise<boolean> => {
  for (;;) {
    const askedAt = instantNow()
    if ((await registry.row(version)) !== null) return false
    if (elapsedMs(askedAt) < ROW_MS) return true
  }
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
