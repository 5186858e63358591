import { Worker } from 'node:worker_threads'

/** Moves a WAL into its database. Resolves when the content at the time of the call was moved: false if some of it may be left. */
export interface Checkpointer {
  move(file: string): Promise<boolean>
  close(): Promise<void>
}

/** What the thread reports. */
interface Moved {
  readonly file: string
  readonly isWhole: boolean
}

/** One thread for all databases of a process, because the main thread should not wait for the disk. */
export const openCheckpointer = (): Checkpointer => {
  const waiting = new Map<string, (isWhole: boolean) => void>()
  let worker: Worker | undefined
  let isClosed = false
  const started = (): Worker => {
    if (worker) return worker
    worker = new Worker(new URL('./checkpointerThread.js', import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1 },
    })
    worker.on('message', ({ file, isWhole }: Moved) => {
      waiting.get(file)?.(isWhole)
      waiting.delete(file)
      if (waiting.size === 0 && !isClosed) worker?.unref() // its end is waited for
    })
    worker.on('error', () => {
      // The thread died: waiting writers move their WALs themselves, and the next move starts another thread.
      worker = undefined
      for (const resolve of waiting.values()) resolve(false)
      waiting.clear()
    })
    return worker
  }
  return {
    move: (file) =>
      new Promise((resolve) => {
        if (isClosed) return resolve(false)
        waiting.set(file, resolve)
        const thread = started()
        thread.ref() // a writer may wait for it
        thread.postMessage(file)
      }),
    async close() {
      isClosed = true
      await worker?.terminate()
      for (const resolve of waiting.values()) resolve(false)
      waiting.clear()
    },
  }
}
