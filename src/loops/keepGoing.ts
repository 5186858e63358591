import { setTimeout as delay } from 'node:timers/promises'
import { clock } from '../clock.ts'
import { messageOf } from '../errors.ts'
import type { Logger } from '../logger.ts'

const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 2000

/**
 * Runs a loop until the signal aborts, and again after it failed: when an engine returns, work goes on
 * without a restart (I9). Pauses between failures double and carry jitter, so that nodes do not come back in step.
 */
export const keepGoing = async (
  name: string,
  loop: (signal: AbortSignal) => Promise<void>,
  { signal, logger }: { signal: AbortSignal; logger: Logger },
): Promise<void> => {
  let pause = FIRST_PAUSE_MS
  while (!signal.aborted) {
    const began = clock.monotonic()
    try {
      await loop(signal)
    } catch (error) {
      if (!signal.aborted) logger.warn(`${name} stopped and will go on`, { error: messageOf(error) })
    }
    if (signal.aborted) return
    if (clock.monotonic() - began > LONGEST_PAUSE_MS) pause = FIRST_PAUSE_MS
    await delay(pause * (0.5 + Math.random()), undefined, { signal }).catch(() => {})
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS)
  }
}
