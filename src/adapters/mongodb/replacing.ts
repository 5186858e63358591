import { setTimeout as delay } from 'node:timers/promises'
import type { Db } from 'mongodb'
import type { Cursor } from '../../events/event.ts'
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
 * folded again that the documents already contain, which changes nothing. It may go back: another projector that was ahead
 * then folds its events again. With `isUnread`, the former version is forgotten first, so that no node takes a collection
 * that was renamed for an empty one.
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
  const next = { by, checkpoint: row.checkpoint, made: isUnread ? undefined : row.made }
  const isForgotten = !isUnread || (await forgetUnread(by, { registry, signal }, isUnread))
  if (!isForgotten || !(await rename(version, next, { db, registry, signal }))) {
    if (current) await registry.setIndexes(version, current.indexes)
    return false
  }
  if (isDeclared) await registry.setIndexes(version, row.indexes)
  if (row.checkpoint !== null) await registry.setCheckpoint(version, row.checkpoint)
  await registry.remove(row)
  return true
}

/** The documents that take the place of others. */
interface Next {
  readonly by: Version
  readonly checkpoint: Cursor | null
  /** `made` of its row, if it still has one. */
  readonly made: string | undefined
}

/**
 * Renames the collections of a version, unless an earlier attempt did. Resolves with false, and changes nothing, if this
 * process was stopped meanwhile and another node has gone on: the version is ahead, or `by` was created again.
 */
const rename = async (version: Version, next: Next, deps: Deps): Promise<boolean> => {
  const { db, registry } = deps
  const { by, checkpoint } = next
  if (!(await isSame(next, registry))) return false
  const listed = db.listCollections({ name: collectionName(by) }, { nameOnly: true })
  if ((await ask(() => listed.toArray())).length === 0) {
    await completeExchange(version, deps)
    return true
  }
  if (!(await registry.claim(version, checkpoint))) return false
  for (const nameOf of [countsName, collectionName]) {
    const isRenamed = await ask(() =>
      db.renameCollection(nameOf(by), nameOf(version), { dropTarget: true }).then(
        () => true,
        (error: unknown) => {
          if (isNotImplemented(error)) return false
          if (isAbsent(error)) return true // a version without counts has one collection
          throw error
        },
      ),
    )
    if (!isRenamed) return renameInSteps(version, next, deps)
  }
  return true
}

const isSame = async ({ by, made }: Next, registry: Registry): Promise<boolean> =>
  (await registry.row(by))?.made === made

/** FerretDB 1 cannot drop the target of a rename. Its collection is missing for some milliseconds, which readers notice (L4). */
const renameInSteps = async (
  version: Version,
  next: Next,
  { db, registry, signal }: Deps,
): Promise<boolean> => {
  const exchange = { by: collectionName(next.by), isMoving: false }
  await registry.setExchange(version, exchange)
  await delay(ANNOUNCED_MS, undefined, { signal })
  if (!(await isSame(next, registry)) || !(await registry.claim(version, next.checkpoint, exchange))) {
    await completeExchange(version, { db, registry })
    return false
  }
  await completeExchange(version, { db, registry })
  return true
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
