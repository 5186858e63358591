import type { Cursor } from '../events/event.ts'

/** Readers that wait for a cursor. */
export class Waiters {
  readonly #waiting = new Set<{ readonly cursor: Cursor; readonly resolve: () => void }>()

  get size(): number {
    return this.#waiting.size
  }

  /** Returns whether a release at this cursor would resolve a waiting reader. */
  has(position: Cursor): boolean {
    for (const { cursor } of this.#waiting) if (cursor <= position) return true
    return false
  }

  /** Resolves when `release` is called with the cursor or a later one, or the signal aborts. */
  wait(cursor: Cursor, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const waiting = {
        cursor,
        resolve: () => {
          this.#waiting.delete(waiting)
          signal?.removeEventListener('abort', waiting.resolve)
          resolve()
        },
      }
      this.#waiting.add(waiting)
      signal?.addEventListener('abort', waiting.resolve, { once: true })
      if (signal?.aborted) waiting.resolve()
    })
  }

  release(position: Cursor): void {
    for (const { cursor, resolve } of this.#waiting) if (cursor <= position) resolve()
  }
}
