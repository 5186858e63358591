import type { IncomingMessage } from 'node:http'
import { clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { withDeadline } from '../../loops/deadline.ts'

/** A client that sends nothing for this long is cut, milliseconds. */
const SILENCE_MS = 30_000
/** So is one that sends, over `SILENCE_MS` of waiting for it, less than this. */
const MIN_BYTES_PER_S = 16 << 10

/**
 * The body of a request chunk by chunk, never more than a chunk ahead of who reads it. Rejects with `request_timeout`
 * when the client is too slow; time that the reader takes does not count. What is not read is thrown away.
 */
export async function* incoming(
  request: IncomingMessage,
  { silenceMs = SILENCE_MS }: { silenceMs?: number } = {},
): AsyncGenerator<Buffer> {
  const chunks = request.iterator({ destroyOnReturn: false }) // so that a refusal can still be told
  const tooSlow = () => new AppError('request_timeout', `body: expected more within ${silenceMs / 1000} s`)
  let waitedMs = 0
  let bytes = 0
  try {
    for (;;) {
      const since = clock.monotonic()
      const next = (await withDeadline(silenceMs, chunks.next(), tooSlow)) as IteratorResult<Buffer>
      if (next.done) return
      waitedMs += clock.monotonic() - since
      bytes += next.value.length
      if (waitedMs >= silenceMs) {
        if (bytes < (MIN_BYTES_PER_S * waitedMs) / 1000) throw tooSlow()
        waitedMs = bytes = 0
      }
      yield next.value
    }
  } catch (error) {
    if (error instanceof AppError) throw error
    throw new AppError('bad_request', 'body: the connection broke off', { cause: error })
  } finally {
    request.resume()
  }
}
