import { setTimeout as delay } from 'node:timers/promises'
import type { Changes } from './changes.ts'

/** The usual upload takes a tenth of this time, milliseconds. */
const PATIENCE_MS = 3000

interface Given {
  readonly changes: Changes
  /** Whether the changed files replace what is done now. */
  readonly isNewer: (paths: readonly string[]) => boolean
  /** Called once if the work takes long. */
  readonly slow: () => Promise<void>
}

/**
 * Does what usually takes a moment. P1: when it takes long, a newer save ends it. P2: before that, no save does, so that
 * saves in quick succession become live.
 */
export const withPatience = async <Result>(
  { changes, isNewer, slow }: Given,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> => {
  const [replaced, done] = [new AbortController(), new AbortController()]
  const watch = async (): Promise<void> => {
    await delay(PATIENCE_MS, undefined, { signal: done.signal }) // P2
    await slow()
    while (!isNewer(changes.pending())) await changes.another(done.signal)
    replaced.abort(new Error('A newer save replaces the upload')) // P1
  }
  const watching = watch().catch((error: unknown) => {
    if (!done.signal.aborted) throw error
  })
  try {
    return await work(replaced.signal)
  } finally {
    done.abort()
    await watching
  }
}
