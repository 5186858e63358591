import { Worker } from 'node:worker_threads'

/** Moves one database's WAL into the database; resolves when all that was in it at the call has moved. */
export interface Checkpointer {
  move(file: string): Promise<void>
  close(): Promise<void>
}

/**
 * One thread for the databases of a process: what it does waits for the disk, and the main thread should
 * not. The writer's own short `wal_checkpoint(RESTART)` afterwards lets the WAL begin anew.
 */
export const openCheckpointer = (): Checkpointer => {
  const waiting = new Map<string, () => void>()
  let worker: Worker | undefined
  const started = (): Worker => {
    if (worker) return worker
    worker = new Worker(new URL('./checkpointerThread.js', import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1 },
    })
    worker.on('message', (file: string) => {
      waiting.get(file)?.()
      waiting.delete(file)
    })
    worker.on('error', () => {
      // The thread died: whoever waits goes on and checkpoints by itself; the next move starts another one.
      worker = undefined
      for (const resolve of waiting.values()) resolve()
      waiting.clear()
    })
    worker.unref()
    return worker
  }
  return {
    move: (file) =>
      new Promise((resolve) => {
        waiting.set(file, resolve)
        started().postMessage(file)
      }),
    async close() {
      await worker?.terminate()
      for (const resolve of waiting.values()) resolve()
      waiting.clear()
    },
  }
}
