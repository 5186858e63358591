import { threadClock } from './threadClock.ts'

const cpu = threadClock()

/** The least processor time of this thread for some work, of five times: pauses of the garbage collector only add to it. Milliseconds. */
export const cpuOf = (work: () => unknown): number => {
  let least = Infinity
  for (let time = 0; time < 5; time++) {
    const began = cpu()
    work()
    least = Math.min(least, cpu() - began)
  }
  return least
}
