import { setTimeout as delay } from 'node:timers/promises'

/** Polls until the condition is true; rejects after a minute. */
export const until = async (condition: () => Promise<boolean> | boolean): Promise<void> => {
  const deadline = performance.now() + 60_000
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error('Expected the condition to become true within a minute')
    await delay(10)
  }
}
