import type { ServerResponse } from 'node:http'
import type { Context } from 'koa'

const HEARTBEAT_MS = 15_000
/** A client with more queued bytes than this is disconnected. It reconnects with its last id (I5). */
export const MAX_QUEUED_BYTES = 256 << 10
/** A client that reads none of its queued bytes for this long is disconnected too. */
const STALLED_MS = 60_000
/** A browser reconnects after this time. */
const RETRY_MS = 2000

/** The lines of a server-sent event before and after its data, which is one line of JSON. */
export const frameHead = (id: string, event: string): string => `id: ${id}\nevent: ${event}\ndata: `
export const FRAME_END = '\n\n'

/** The position of a subscription, for a client that loses its connection before the first event. */
export const POSITION_HEADER = 'Stream-Position'

/** One server-sent event as bytes. `id` must be free of line breaks. */
export const frame = (id: string, event: string, data: unknown): Buffer =>
  Buffer.from(`${frameHead(id, event)}${JSON.stringify(data)}${FRAME_END}`)

/** A comment. A client that has received neither it nor an event takes the end of its stream for a failure. */
export const HEARTBEAT = Buffer.from(':hb\n\n')

/** An open text/event-stream reply. Only the socket buffers data. */
export class SseReply {
  /** Aborts when the client has left or was disconnected, or when the reply was ended. */
  readonly gone: AbortSignal
  readonly #response: ServerResponse
  readonly #heartbeat: NodeJS.Timeout
  readonly #left = new AbortController()
  #isInFrame = false

  constructor(ctx: Context) {
    ctx.respond = false
    ctx.res.useChunkedEncodingByDefault = false // one write for each frame, not three; the stream ends with its connection
    this.#response = ctx.res
    this.gone = this.#left.signal
    ctx.res.writeHead(200, {
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-store, no-transform',
      Connection: 'close',
      'X-Accel-Buffering': 'no',
      'X-Request-Id': ctx.state.request_id,
    })
    ctx.req.socket.setNoDelay(true)
    const position = ctx.res.getHeader(POSITION_HEADER)
    // The blank line ends the block, so that the id is valid also if the connection ends before the first event.
    ctx.res.write(`retry: ${RETRY_MS}\n${position === undefined ? '' : `id: ${String(position)}\n\n`}`)
    this.#heartbeat = setInterval(() => {
      if (this.#response.writableLength === 0 && !this.#isInFrame) this.write(HEARTBEAT) // otherwise a stalled client would seem active
    }, HEARTBEAT_MS)
    ctx.res.setTimeout(STALLED_MS, () => this.#letGo())
    ctx.res.on('close', () => this.#close())
    ctx.res.on('error', () => this.#close())
  }

  /** Writes without a limit: the caller awaits `flushed` before the next write. */
  write(bytes: Buffer): void {
    if (!this.gone.aborted) this.#response.write(bytes)
  }

  /** Writes one event whose data is read as fast as the client receives it. */
  async writeFrame(head: string, data: AsyncIterable<Buffer>): Promise<void> {
    this.#isInFrame = true
    this.write(Buffer.from(head))
    for await (const chunk of data) {
      this.write(chunk)
      await this.flushed()
      if (this.gone.aborted) return
    }
    this.write(Buffer.from(FRAME_END))
    this.#isInFrame = false
    await this.flushed()
  }

  /** Writes events without waiting; a client that is too slow is disconnected. */
  push(bytes: Buffer): void {
    if (this.#response.writableLength > MAX_QUEUED_BYTES) this.#letGo()
    else this.write(bytes)
  }

  /** Resolves when the socket has accepted all written data, or the client has left. */
  flushed(): Promise<void> {
    if (this.gone.aborted || this.#response.writableLength === 0) return Promise.resolve()
    return new Promise((resolve) => {
      const done = () => {
        this.#response.off('drain', done)
        this.gone.removeEventListener('abort', done)
        resolve()
      }
      this.#response.on('drain', done)
      this.gone.addEventListener('abort', done)
      if (!this.#response.writableNeedDrain) done()
    })
  }

  end(bytes?: Buffer): void {
    if (this.gone.aborted) return
    this.#response.end(bytes)
    this.#close()
  }

  #letGo(): void {
    this.#response.destroy()
    this.#close()
  }

  #close(): void {
    clearInterval(this.#heartbeat)
    this.#left.abort()
  }
}
