import type { IncomingMessage } from 'node:http'
import { clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { withDeadline } from '../../loops/deadline.ts'

/** The longest pause of a client while it sends a body. */
const SILENCE_MS = 30_000
/** The slowest rate at which a client may send a body, measured over `SILENCE_MS` of waiting. */
const MIN_BYTES_PER_S = 16 << 10

/** Watches the rate of a body that a library reads. `tooSlow` rejects with `request_timeout`; it never resolves. */
export const pace = (
  request: IncomingMessage,
  { silenceMs = SILENCE_MS }: { silenceMs?: number } = {},
): { readonly tooSlow: Promise<never>; readonly stop: () => void } => {
  const { socket } = request
  let before = socket.bytesRead
  let timer: NodeJS.Timeout | undefined
  const tooSlow = new Promise<never>((_, reject) => {
    timer = setInterval(() => {
      const bytes = socket.bytesRead - before
      before = socket.bytesRead
      const isOurs = request.isPaused() || request.complete // then the client does not delay the request
      if (!isOurs && bytes < (MIN_BYTES_PER_S * silenceMs) / 1000) reject(bodyTooSlow(silenceMs))
    }, silenceMs)
  })
  return { tooSlow, stop: () => clearInterval(timer) }
}

const bodyTooSlow = (silenceMs: number): AppError =>
  new AppError('request_timeout', `body: expected more within ${silenceMs / 1000} s`)

/**
 * Yields the body of a request, at most one chunk ahead of the reader. Rejects with `request_timeout` when
 * the client is too slow, not counting the reader's time. A body that is not read to its end is discarded.
 */
export async function* incoming(
  request: IncomingMessage,
  { silenceMs = SILENCE_MS }: { silenceMs?: number } = {},
): AsyncGenerator<Buffer> {
  const chunks = request.iterator({ destroyOnReturn: false }) // so that an error reply can still be sent
  const tooSlow = () => bodyTooSlow(silenceMs)
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
    throw new AppError('bad_request', 'body: the connection was lost', { cause: error })
  } finally {
    request.resume()
  }
}
