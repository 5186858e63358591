import { setTimeout as delay } from 'node:timers/promises'
import type { Db } from 'mongodb'
import { messageOf } from '../../errors.ts'
import { ask } from './failures.ts'
import { POINTER_MS } from './live.ts'
import { collectionName, type Registry } from './registry.ts'

/** L1: leaves time for readers on other nodes and for differences between clocks. */
const GRACE_MS = 3 * POINTER_MS

interface Dropping {
  readonly db: Db
  readonly registry: Registry
  readonly signal: AbortSignal
  readonly onWarn: (message: string) => void
}

/**
 * Drops the versions older than the live one after `GRACE_MS`. Versions that remain after an abort or an outage are
 * dropped when the next version goes live or the service starts again.
 */
export const dropOlder = async (name: string, { db, registry, signal, onWarn }: Dropping): Promise<void> => {
  try {
    await delay(GRACE_MS, undefined, { signal, ref: false })
    const live = await registry.live(name)
    for (const version of await versionsOf(db, name)) {
      if (!live || version >= live.version) continue
      await registry.forget({ name, version })
      await ask(() => db.collection(collectionName({ name, version })).drop())
    }
  } catch (error) {
    if (!signal.aborted) onWarn(`Older versions of ${name} could not be dropped yet: ${messageOf(error)}`)
  }
}

const versionsOf = async (db: Db, name: string): Promise<number[]> => {
  const prefix = collectionName({ name, version: 0 }).slice(0, -1)
  const listed = await ask(() => db.listCollections({}, { nameOnly: true }).toArray())
  return listed
    .filter((collection) => collection.name.startsWith(prefix))
    .map((collection) => Number(collection.name.slice(prefix.length)))
    .filter((version) => Number.isInteger(version))
}
