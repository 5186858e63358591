import { setTimeout as delay } from 'node:timers/promises'
import { clock } from '../../src/clock.ts'
import { PATIENCE } from './patience.ts'

/**
 * Waits until the condition returns a truthy value, and resolves with it. A condition that throws is not
 * met yet; its last error is the `cause` of the rejection after `timeoutMs` (default 10 s).
 */
export const until = async <T>(
  condition: () => T | Promise<T>,
  { timeoutMs = 10_000, everyMs = 5 }: { timeoutMs?: number; everyMs?: number } = {},
): Promise<NonNullable<T>> => {
  const deadline = clock.monotonic() + timeoutMs * PATIENCE
  for (;;) {
    let cause: unknown
    try {
      const value = await condition()
      if (value) return value
    } catch (error) {
      cause = error
    }
    if (clock.monotonic() >= deadline) {
      throw new Error(`Expected within ${timeoutMs} ms: ${condition.toString()}`, { cause })
    }
    await delay(everyMs)
  }
}
