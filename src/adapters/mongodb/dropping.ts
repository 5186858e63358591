import { setTimeout as delay } from 'node:timers/promises'
import type { Db } from 'mongodb'
import type { Version } from '../../ports/readModels.ts'
import { collectionName, dropCollection } from './collections.ts'
import { countsName } from './counts.ts'
import { ROW_MS } from './presence.ts'
import type { Registry } from './registry.ts'

/** L1: leaves time for readers on other nodes and for differences between clocks. */
const GRACE_MS = 3 * ROW_MS

/**
 * Marks a version, and drops it after `GRACE_MS` unless a node has removed the mark. A crash in between leaves a mark or a
 * collection without a row. The next removal completes either.
 */
export const dropVersion = async (
  version: Version,
  { db, registry, signal }: { db: Db; registry: Registry; signal: AbortSignal },
  isUnread: () => Promise<boolean>,
): Promise<void> => {
  if (!(await isUnread())) return
  const mark = await registry.mark(version)
  await delay(GRACE_MS, undefined, { signal })
  if (!(await isUnread())) return registry.keep(version)
  if (!(await registry.forget(version, mark))) return
  await dropCollection(db, countsName(version)) // first: an interrupted removal is found by its documents
  await dropCollection(db, collectionName(version))
}
