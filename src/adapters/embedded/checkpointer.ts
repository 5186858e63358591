import { Worker } from 'node:worker_threads'
import { messageOf } from '../../errors.ts'

export interface Checkpointer {
  /** Moves a WAL into its database. Resolves when the content at the time of the call has been moved. */
  move(file: string): Promise<void>
  /** Begins to sync a WAL. */
  sync(file: string): void
  close(): Promise<void>
}

/**
 * The thread needs 5 MB of the old generation to start. With 2 MB, V8 ends the whole process, so the limit has a margin: an
 * unused part costs nothing.
 */
const resourceLimits = { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 1 }

/** What an operator preloads into the process (`NODE_OPTIONS`, `--import`) would exceed the small heap of the thread. */
const withoutPreloads = { env: {}, execArgv: [] }

/**
 * One thread for all databases of a process, because the main thread should not wait for the disk. Afterwards the
 * writer resets the WAL with its own short `wal_checkpoint(RESTART)`.
 */
export const openCheckpointer = (): Checkpointer => {
  const waiting = new Map<string, () => void>()
  let worker: Worker | undefined
  const resolveAll = (): void => {
    for (const resolve of waiting.values()) resolve()
    waiting.clear()
  }
  /** Waiting writers do their own checkpoint, and the next move starts another thread. */
  const failed = (error: unknown): void => {
    warnOnce(error)
    worker = undefined
    resolveAll()
  }
  const started = (): Worker => {
    if (worker) return worker
    worker = new Worker(new URL('./checkpointerThread.js', import.meta.url), {
      ...withoutPreloads,
      resourceLimits,
    })
    worker.on('message', (file: string) => {
      waiting.get(file)?.()
      waiting.delete(file)
    })
    worker.on('error', failed)
    worker.unref()
    return worker
  }
  const begin = (task: 'move' | 'sync', file: string): void => {
    try {
      started().postMessage({ task, file })
    } catch (error) {
      failed(error) // the system refuses a thread: its limit is reached
    }
  }
  return {
    move: (file) =>
      new Promise((resolve) => {
        waiting.set(file, resolve)
        begin('move', file)
      }),
    sync: (file) => begin('sync', file),
    async close() {
      await worker?.terminate()
      resolveAll()
    },
  }
}

let hasWarned = false

const warnOnce = (error: unknown): void => {
  if (hasWarned) return
  hasWarned = true
  process.emitWarning(
    `The thread that moves written data into the databases failed, and requests wait for this work: ${messageOf(error)}`,
  )
}
