import type { OpenEventStore } from '../eventStore.ts'

/** Runs a test on a store opened for it alone, as those need that reopen or close it. */
export const alone =
  (open: () => Promise<OpenEventStore>, test: (opened: OpenEventStore) => Promise<void>) =>
  async (): Promise<void> => {
    const opened = await open()
    try {
      await test(opened)
    } finally {
      await opened.close()
    }
  }
