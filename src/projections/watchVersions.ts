import { setTimeout as delay } from 'node:timers/promises'
import { PermanentError } from '../errors.ts'
import type { ReadModels } from '../ports/readModels.ts'
import { allNames } from './index.ts'
import { nameOf } from './projection.ts'

/** Pauses between looks, milliseconds. */
const LOOK_MS = 10_000

/**
 * Rejects when a version that this node reads was dropped, because the node was silent for so long that it seemed dead. Its
 * reads are refused from then on, so it must not receive requests.
 */
export const watchVersions = async (
  { readModels, lookMs = LOOK_MS }: { readModels: Pick<ReadModels, 'versions'>; lookMs?: number },
  signal: AbortSignal,
): Promise<void> => {
  const seen = new Set<string>()
  while (!signal.aborted) {
    const stored = new Set((await readModels.versions()).map(nameOf))
    for (const name of allNames) {
      if (stored.has(name)) seen.add(name)
      else if (seen.has(name))
        throw new PermanentError(
          'unavailable',
          `The read model ${name} was dropped, because this node was silent for too long`,
        )
    }
    await delay(lookMs, undefined, { signal }).catch(() => {})
  }
}
