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
  readonly logger: Pick<Logger, 'warn'>
  readonly lookMs?: number | undefined
}

/**
 * Notices read models that were restored from a backup while their projectors run: a checkpoint never decreases otherwise. The
 * projector would continue behind the facts that the restored documents lack, and they would be missing for ever (I8). A
 * projector that writes before the next look is refused by the read models on a server.
 */
export const watchRestored = async (
  { readModels, projectors, again, logger, lookMs = LOOK_MS }: Deps,
  signal: AbortSignal,
): Promise<void> => {
  while (!signal.aborted) {
    await delay(lookMs, undefined, { signal, ref: false }).catch(() => {})
    for (const projected of projectors) {
      const { name, projection, stored } = projected
      if (stored === START || signal.aborted) continue
      const checkpoint = await checkpointOf(readModels, projection)
      if (checkpoint === undefined || checkpoint >= stored) continue
      logger.warn(`The read model ${name} was restored from a backup and is brought up to date`, {
        from: checkpoint,
        before: stored,
      })
      await again(name)
    }
  }
}

/** Undefined while the engine does not answer: the projector reports that, and the next look asks again. */
const checkpointOf = async (
  readModels: Deps['readModels'],
  projection: CollectionSpec,
): Promise<Cursor | undefined> => {
  try {
    return (await readModels.reader(projection).checkpoint()) ?? START
  } catch (error) {
    if (isRetryable(error)) return undefined
    throw error
  }
}
