import { watch } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { clock } from '../../clock.ts'
import { AppError, messageOf } from '../../errors.ts'

/** Files that changed together. */
export interface Batch {
  /** Relative to the folder, sorted. */
  readonly paths: readonly string[]
  /** When the first one changed, monotonic milliseconds. */
  readonly sinceMs: number
}

export interface Changes {
  /** Resolves with everything that changed since the last call, and waits for it; with null if nothing changes in time. */
  next(withinMs: number | null): Promise<Batch | null>
  /** What has changed since the last call. */
  pending(): readonly string[]
  /** Resolves with the next change. Rejects when the signal aborts. `next` is not called meanwhile. */
  another(signal: AbortSignal): Promise<void>
}

/** Other files of the same save arrive within this time, milliseconds. */
const TOGETHER_MS = 10

/** Folders of packages, of data and of tools. */
const IGNORED = /(?:^|[/\\])(?:node_modules|\.(?:svc|git|hg|svn|idea|vscode|cache))(?:[/\\]|$)/

/** Watches a folder until the signal aborts. Then `next` rejects. */
export const watchFolder = (folder: string, signal: AbortSignal): Changes => {
  const paths = new Set<string>()
  let sinceMs = 0
  let failure: Error | null = null
  let wake = (): void => {}
  const watcher = watch(folder, { recursive: true, signal, ignore: (path) => IGNORED.test(path) })
  watcher.on('change', (_, path) => {
    const name = String(path)
    if (IGNORED.test(name)) return // where the system watches the whole tree
    if (paths.size === 0) sinceMs = clock.monotonic()
    paths.add(name)
    wake()
  })
  watcher.on('error', (error) => {
    failure = new AppError('unavailable', `${folder} cannot be watched: ${messageOf(error)}`, {
      cause: error,
    })
    wake()
  })
  signal.addEventListener('abort', () => wake(), { once: true })
  return {
    async next(withinMs) {
      let isLate = false
      const beLate = () => {
        isLate = true
        wake()
      }
      const timer = withinMs === null ? undefined : setTimeout(beLate, withinMs)
      try {
        while (paths.size === 0 && !isLate) {
          signal.throwIfAborted()
          if (failure) throw failure
          await new Promise<void>((resolve) => (wake = resolve))
        }
      } finally {
        clearTimeout(timer)
      }
      if (paths.size === 0) return null
      await delay(TOGETHER_MS)
      const batch = { paths: [...paths].sort(), sinceMs }
      paths.clear()
      return batch
    },
    pending: () => [...paths].sort(),
    another: (signal) =>
      new Promise((resolve, reject) => {
        wake = resolve
        signal.addEventListener('abort', () => reject(new Error('No change was awaited')), { once: true })
      }),
  }
}
