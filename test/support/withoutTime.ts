import { clock } from '../../src/clock.ts'

/** The monotonic clock of this process stands still during `work`, however long the machine pauses meanwhile. Timers run. */
export const withoutTime = async (work: () => unknown): Promise<void> => {
  const { monotonic } = clock
  const stopped = monotonic()
  clock.monotonic = () => stopped
  try {
    await work()
  } finally {
    clock.monotonic = monotonic
  }
}
