import { setTimeout as delay } from 'node:timers/promises'
import type { Db } from 'mongodb'
import type { Version } from '../../ports/readModels.ts'
import { collectionName, COUNTS, dropCollection } from './collections.ts'
import { countsName } from './counts.ts'
import { forgetUnread } from './dropping.ts'
import { ask, isAbsent, isNotImplemented } from './failures.ts'
import { ROW_MS } from './presence.ts'
import { declaredOf, type Registry } from './registry.ts'

/** The time in which each reader notices that an exchange is announced. */
const ANNOUNCED_MS = 1.5 * ROW_MS

interface Deps {
  readonly db: Db
  readonly registry: Registry
  readonly signal: AbortSignal
}

/**
 * Renames the collections of one version to those of another, each of which MongoDB does at once for all readers. Both
 * versions contain the same events, so their counts agree. The checkpoint follows: after a crash in between, events are
 * folded again that the documents already contain, which changes nothing. With `isUnread`, the former version is
 * forgotten first, so that no node takes a collection that was renamed for an empty one.
 */
export const replaceVersion = async (
  version: Version,
  by: Version,
  { db, registry, signal }: Deps,
  isUnread?: () => Promise<boolean>,
): Promise<boolean> => {
  const row = await registry.row(by)
  if (!row) return true
  const current = await registry.row(version)
  // Readers that know the row must not expect indexes that the documents do not have, neither before nor after the rename.
  const isDeclared = current && declaredOf(current) === row.indexes
  if (!isDeclared) await registry.setIndexes(version, row.indexes)
  if (isUnread && !(await forgetUnread(by, { registry, signal }, isUnread))) {
    if (current) await registry.setIndexes(version, current.indexes)
    return false
  }
  await rename(version, by, { db, registry, signal })
  if (isDeclared) await registry.setIndexes(version, row.indexes)
  if (row.checkpoint !== null) await registry.advance(version, row.checkpoint)
  await registry.remove(by)
  return true
}

/** Renames the collections of a version, unless an earlier attempt did. */
const rename = async (version: Version, by: Version, deps: Deps): Promise<void> => {
  for (const nameOf of [countsName, collectionName]) {
    const isRenamed = await ask(() =>
      deps.db.renameCollection(nameOf(by), nameOf(version), { dropTarget: true }).then(
        () => true,
        (error: unknown) => {
          if (isNotImplemented(error)) return false
          if (isAbsent(error)) return true // a version without counts has one collection
          throw error
        },
      ),
    )
    if (!isRenamed) return renameInSteps(version, by, deps)
  }
}

/** FerretDB 1 cannot drop the target of a rename. Its collection is missing for some milliseconds, which readers notice (L4). */
const renameInSteps = async (
  version: Version,
  by: Version,
  { db, registry, signal }: Deps,
): Promise<void> => {
  const exchange = { by: collectionName(by), isMoving: false }
  await registry.setExchange(version, exchange)
  await delay(ANNOUNCED_MS, undefined, { signal })
  await registry.setExchange(version, { ...exchange, isMoving: true })
  await completeExchange(version, { db, registry })
}

/** Completes an exchange that a crash has interrupted. One that was only announced does not take place. */
export const completeExchange = async (
  version: Version,
  { db, registry }: Omit<Deps, 'signal'>,
): Promise<void> => {
  const { exchange } = (await registry.row(version)) ?? {}
  if (!exchange) return
  for (const suffix of exchange.isMoving ? [COUNTS, ''] : [])
    await ask(() => renameOver(db, `${exchange.by}${suffix}`, `${collectionName(version)}${suffix}`))
  await registry.setExchange(version, null)
}

const renameOver = async (db: Db, from: string, to: string): Promise<void> => {
  const former = `${to}~former`
  const ifThere = (work: Promise<unknown>) =>
    work.catch((error: unknown) => {
      if (!isAbsent(error)) throw error
    })
  const [next] = await db.listCollections({ name: from }, { nameOnly: true }).toArray()
  if (next) {
    await dropCollection(db, former)
    await ifThere(db.renameCollection(to, former))
    await ifThere(db.renameCollection(from, to))
  }
  await dropCollection(db, former)
}
