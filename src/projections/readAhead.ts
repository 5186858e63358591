import type { Batch } from '../ports/eventStore.ts'

/**
 * Reads the next batch while the caller works on the one before, as long as the log has more: a server stores a batch in
 * another processor. At the end of the log nothing is read ahead, because the next batch grows meanwhile.
 */
export async function* readAhead(batches: AsyncGenerator<Batch>): AsyncGenerator<Batch> {
  let next: Promise<IteratorResult<Batch>> | null = null
  try {
    for (;;) {
      const { done, value } = await (next ?? batches.next())
      next = null
      if (done) return
      if (!value.caughtUp) {
        next = batches.next()
        next.catch(() => {}) // reported when it is awaited
      }
      yield value
    }
  } finally {
    void batches.return(undefined).catch(() => {}) // the caller's error does not wait for the log
  }
}
