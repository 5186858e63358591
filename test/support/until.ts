import { setTimeout as delay } from 'node:timers/promises'
import { clock } from '../../src/clock.ts'
import { PATIENCE, SLACK } from './patience.ts'

/**
 * Waits until the condition returns a truthy value, and resolves with it. A condition that throws is not
 * met yet; its last error is the `cause` of the rejection. `timeoutMs` (default 10 s) is what an idle machine may need.
 */
export const until = async <T>(
  condition: () => T | Promise<T>,
  { timeoutMs = 10_000, everyMs = 5 }: { timeoutMs?: number; everyMs?: number } = {},
): Promise<NonNullable<T>> => {
  const limitMs = timeoutMs * PATIENCE * SLACK
  const deadline = clock.monotonic() + limitMs
  for (;;) {
    let cause: unknown
    try {
      const value = await condition()
      if (value) return value
    } catch (error) {
      cause = error
    }
    if (clock.monotonic() >= deadline) {
      throw new Error(`Expected within ${limitMs} ms: ${condition.toString()}`, { cause })
    }
    await delay(everyMs)
  }
}
