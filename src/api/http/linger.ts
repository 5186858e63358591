import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'

/** Whoever sends nothing for this long has stopped sending. */
const SILENT_MS = 2000
/** And whoever sends for this long does not mean to read the reply. */
const LONGEST_MS = 20_000

/**
 * A reply to a request whose body is still on its way: the connection stays open while the client sends, what comes is
 * thrown away. To close it at once would reset it, and with that take the reply from the client.
 */
export const lingering = (request: IncomingMessage, reply: string): Readable =>
  Readable.from(
    (async function* () {
      yield reply
      await drained(request)
    })(),
    { objectMode: false },
  )

const drained = (request: IncomingMessage): Promise<void> =>
  new Promise((resolve) => {
    const done = () => {
      clearTimeout(silent)
      clearTimeout(longest)
      resolve()
    }
    const silent = setTimeout(done, SILENT_MS)
    const longest = setTimeout(done, LONGEST_MS)
    request.on('data', () => silent.refresh())
    request.on('end', done).on('close', done).on('error', done)
    if (request.complete || request.destroyed) done()
    else request.resume()
  })
