import { setTimeout as delay } from 'node:timers/promises'
import { isRetryable } from '../errors.ts'
import { type Cursor, START } from '../events/event.ts'
import type { Logger } from '../logger.ts'
import type { CollectionSpec, ReadModels } from '../ports/readModels.ts'

/** Pauses between looks, milliseconds. */
const LOOK_MS = 5000

interface Projected {
  readonly name: string
  readonly projection: CollectionSpec
  /** The checkpoint that its projector has stored or found; `START` while it does not run. */
  readonly stored: Cursor
}

interface Deps {
  readonly readModels: Pick<ReadModels, 'reader'>
  readonly projectors: readonly Projected[]
  /** Lets a projector begin again at the stored checkpoint. */
  readonly again: (name: string) => Promise<void>
  /** The read models whose stored positions, which nodes read, were restored. */
  readonly lostReports?: () => Promise<readonly string[]>
  readonly logger: Pick<Logger, 'warn'>
  readonly lookMs?: number | undefined
}

/**
 * Notices read models that were restored from a backup while their projectors run: a checkpoint never decreases otherwise. The
 * projector would continue behind the facts that the restored documents lack, and they would be missing for ever (I8). A
 * projector that writes before the next look is refused by the read models on a server. One that begins again reports its
 * position when it has reached the end of the log. Without that, a new node would wait until the log grows.
 */
export const watchRestored = async (
  { readModels, projectors, again, lostReports = () => Promise.resolve([]), logger, lookMs = LOOK_MS }: Deps,
  signal: AbortSignal,
): Promise<void> => {
  while (!signal.aborted) {
    await delay(lookMs, undefined, { signal, ref: false }).catch(() => {})
    for (const projected of projectors) {
      const { name, projection, stored } = projected
      if (stored === START || signal.aborted) continue
      const checkpoint = await answered(readModels.reader(projection).checkpoint())
      if (checkpoint === undefined || (checkpoint ?? START) >= stored) continue
      logger.warn(`The read model ${name} was restored from a backup and is brought up to date`, {
        from: checkpoint ?? START,
        before: stored,
      })
      await again(name)
    }
    for (const name of (await answered(lostReports())) ?? []) {
      if (signal.aborted) return
      logger.warn(`The position of the read model ${name} was restored from a backup and is reported again`)
      await again(name)
    }
  }
}

/** Undefined while the engine does not answer: the projector reports that, and the next look asks again. */
const answered = async <T>(answer: Promise<T>): Promise<T | undefined> => {
  try {
    return await answer
  } catch (error) {
    if (isRetryable(error)) return undefined
    throw error
  }
}
