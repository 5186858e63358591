import { setTimeout as delay } from 'node:timers/promises'
import type { ReadModels, Version } from '../ports/readModels.ts'
import { nameOf } from './projection.ts'
import type { Projectors } from './projectors.ts'
import { servedOf } from './shadow.ts'
import { forgetSkipped } from './skippedFacts.ts'

/** Pauses between looks for versions that no node reads, milliseconds. */
const LOOK_MS = 5000

export interface Unread {
  readonly readModels: ReadModels
  readonly projectors: Pick<Projectors, 'replaces'>
  /** The names of the versions that living nodes read. */
  readonly namesRead: () => Promise<ReadonlySet<string>>
  /** Removes the position that was reported of a version. Called before it is dropped: a crash must not leave the position. */
  readonly forget?: (name: string) => Promise<void>
  /** A version is dropped after so many looks that found no reader, so that a node may restart meanwhile. */
  readonly looks: number
  readonly lookMs?: number
}

/**
 * Drops the versions that came before those of this build, when no living node reads them. A version is kept until the one
 * of this build has caught up: until then, nodes of the earlier build may be needed again. Later versions are not touched.
 * The documents of a rebuild that did not end go with the version that they were built for.
 */
export const dropUnread = async (
  { readModels, projectors, namesRead, forget = () => Promise.resolve(), looks, lookMs = LOOK_MS }: Unread,
  signal: AbortSignal,
): Promise<void> => {
  const isUnread = async (version: Version) => {
    if ((await namesRead()).has(nameOf(servedOf(version)))) return false
    await forget(nameOf(version)) // a node that keeps it meanwhile reports its position again
    return true
  }
  let unread = new Map<string, number>()
  while (!signal.aborted) {
    const names = await namesRead()
    const stored = await readModels.versions()
    await forgetSkipped(readModels)
    const replaced = stored.filter((version) => projectors.replaces(servedOf(version)))
    const seen = replaced.filter((version) => !names.has(nameOf(servedOf(version))))
    unread = new Map(seen.map((version) => [nameOf(version), (unread.get(nameOf(version)) ?? 0) + 1]))
    const due = seen.filter((version) => (unread.get(nameOf(version)) ?? 0) >= looks)
    await Promise.all(due.map((version) => readModels.drop(version, () => isUnread(version))))
    await delay(lookMs, undefined, { signal }).catch(() => {})
  }
}
