import { setTimeout as delay } from 'node:timers/promises'
import type { ReadModels } from '../ports/readModels.ts'
import { freeVersion, type Readers } from './freeVersion.ts'
import { nameOf } from './projection.ts'
import type { Projectors } from './projectors.ts'
import { servedOf } from './shadow.ts'
import { forgetSkipped } from './skippedFacts.ts'

/** Pauses between looks for versions that no node reads, milliseconds. */
const LOOK_MS = 5000

export interface Unread extends Readers {
  readonly readModels: ReadModels
  readonly projectors: Pick<Projectors, 'replaces'>
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
  { readModels, projectors, looks, lookMs = LOOK_MS, ...readers }: Unread,
  signal: AbortSignal,
): Promise<void> => {
  let unread = new Map<string, number>()
  while (!signal.aborted) {
    const names = await readers.namesRead()
    const stored = await readModels.versions()
    await forgetSkipped(readModels)
    const replaced = stored.filter((version) => projectors.replaces(servedOf(version)))
    const seen = replaced.filter((version) => !names.has(nameOf(servedOf(version))))
    unread = new Map(seen.map((version) => [nameOf(version), (unread.get(nameOf(version)) ?? 0) + 1]))
    const due = seen.filter((version) => (unread.get(nameOf(version)) ?? 0) >= looks)
    await Promise.all(due.map((version) => readModels.drop(version, () => freeVersion(readers, version))))
    await delay(lookMs, undefined, { signal }).catch(() => {})
  }
}
