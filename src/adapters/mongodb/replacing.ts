import type { Db } from 'mongodb'
import type { Version } from '../../ports/readModels.ts'
import { collectionName, dropCollection } from './collections.ts'
import { countsName } from './counts.ts'
import { forgetUnread } from './dropping.ts'
import { ask, isAbsent, isNotImplemented } from './failures.ts'
import type { Registry } from './registry.ts'

/**
 * Renames the collections of one version to those of another, each of which MongoDB does at once for all readers. Both
 * versions contain the same events, so their counts agree. The checkpoint follows: after a crash in between, events are
 * folded again that the documents already contain, which changes nothing. With `isUnread`, the former version is
 * forgotten first, so that no node takes a collection that was renamed for an empty one.
 */
export const replaceVersion = async (
  version: Version,
  by: Version,
  { db, registry, signal }: { readonly db: Db; readonly registry: Registry; readonly signal: AbortSignal },
  isUnread?: () => Promise<boolean>,
): Promise<boolean> => {
  const row = await registry.row(by)
  if (!row) return true
  if (isUnread && !(await forgetUnread(by, { registry, signal }, isUnread))) return false
  for (const nameOf of [countsName, collectionName]) await rename(db, nameOf(by), nameOf(version))
  if (row.checkpoint !== null) await registry.advance(version, row.checkpoint)
  await registry.remove(by)
  return true
}

/** Renames a collection, unless an earlier attempt did. One without an entry may not exist. */
const rename = async (db: Db, from: string, to: string): Promise<void> => {
  await ask(() =>
    db.renameCollection(from, to, { dropTarget: true }).catch((error: unknown) => {
      if (isNotImplemented(error)) return renameInSteps(db, from, to)
      if (!isAbsent(error)) throw error
    }),
  )
}

/** FerretDB 1 cannot drop the target of a rename: its readers see an empty collection for some milliseconds. */
const renameInSteps = async (db: Db, from: string, to: string): Promise<void> => {
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
