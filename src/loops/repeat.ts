import { setTimeout as delay } from 'node:timers/promises'
import { type Background, keepGoing } from './keepGoing.ts'

/** Works again and again, with a pause in milliseconds after each time, until the signal aborts (`keepGoing`). */
export const repeat = (
  name: string,
  work: () => Promise<void>,
  { everyMs, ...background }: Background & { readonly everyMs: number },
): Promise<void> =>
  keepGoing(
    name,
    async (signal) => {
      while (!signal.aborted) {
        await work()
        await delay(everyMs, undefined, { signal }).catch(() => {})
      }
    },
    background,
  )
