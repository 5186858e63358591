import { threadClock } from './threadClock.ts'

const cpuMs = threadClock()

/**
 * Measures the processor time of this thread during some work: all of it, and the most between two turns of the event loop.
 * Unlike wall-clock time, it does not depend on other processes, nor on the threads that collect garbage while this one waits.
 */
export const longestTurn = async (
  work: () => Promise<unknown>,
): Promise<{ longestMs: number; allMs: number }> => {
  let [isOver, longestMs, last] = [false, 0, cpuMs()]
  const began = last
  const watching = (async () => {
    while (!isOver) {
      await new Promise(setImmediate)
      const now = cpuMs()
      longestMs = Math.max(longestMs, now - last)
      last = now
    }
  })()
  await work()
  isOver = true
  await watching
  return { longestMs, allMs: cpuMs() - began }
}
