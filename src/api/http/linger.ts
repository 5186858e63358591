import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'

/** A client that sends nothing for this long has stopped sending. */
const SILENT_MS = 2000
/** A client that sends for this long is assumed never to read the reply. */
const LONGEST_MS = 20_000

/**
 * Replies to a request whose body is still arriving, and discards the rest of the body. Closing at once
 * would reset the connection, and the client could lose the reply.
 */
export const lingering = (request: IncomingMessage, reply: string): Readable =>
  Readable.from(
    (async function* () {
      yield reply
      await drained(request)
    })(),
    { objectMode: false },
  )

/** Discards a body until it ends, its client stops sending, or some time has passed. */
export const drained = (request: IncomingMessage): Promise<void> =>
  new Promise((resolve) => {
    const done = () => {
      clearTimeout(silent)
      clearTimeout(longest)
      resolve()
    }
    // Timers run before what arrived during a stall is read: one more turn reads it.
    let look: NodeJS.Immediate | undefined
    const silent = setTimeout(() => (look = setImmediate(done)), SILENT_MS)
    const longest = setTimeout(done, LONGEST_MS)
    request.on('data', () => {
      clearImmediate(look)
      silent.refresh()
    })
    request.on('end', done).on('close', done).on('error', done)
    if (request.complete || request.destroyed) done()
    else request.resume()
  })
