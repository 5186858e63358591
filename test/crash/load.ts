import { setTimeout as delay } from 'node:timers/promises'
import { messageOf } from '../../src/errors.ts'
import { Later, type Target, type Writer } from './client.ts'

/** The pause of a client between two writes: the checks take longer than the writes. */
const PAUSE_MS = 10

/** Lets each client write until the signal. Resolves when all have ended; the last writes may be interrupted. */
export const load = async (target: Target, writers: readonly Writer[], over: AbortSignal): Promise<void> => {
  const ends = await Promise.allSettled(
    writers.map(async (writer) => {
      while (!over.aborted) {
        try {
          await writer.write(target)
        } catch (error) {
          if (over.aborted) return
          if (!(error instanceof Later)) throw error
        }
        await delay(PAUSE_MS)
      }
    }),
  )
  const failed = ends.find((end) => end.status === 'rejected')
  if (failed) throw new Error(messageOf(failed.reason), { cause: failed.reason })
}
