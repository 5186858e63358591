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
const HEARTBEAT = ':hb\n\n'

/** An open text/event-stream reply. Only the socket buffers data. */
export class SseReply {
  /** Aborts when the client has left or was disconnected, or when the reply was ended. */
  readonly gone: AbortSignal
  readonly #response: ServerResponse
  readonly #heartbeat: NodeJS.Timeout
  readonly #left = new AbortController()
  #isInFrame = false
  /** The id that a browser which has received no event sends when it returns. */
  #position: string | undefined

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
    this.#position = ctx.res.getHeader(POSITION_HEADER)?.toString()
    ctx.res.write(`retry: ${RETRY_MS}\n`) // no blank line: it belongs to the first event
    this.#heartbeat = setInterval(() => {
      if (this.#response.writableLength === 0 && !this.#isInFrame) this.#response.write(this.#sign) // otherwise a stalled client would seem active
    }, HEARTBEAT_MS)
    ctx.res.setTimeout(STALLED_MS, () => this.#letGo())
    ctx.res.on('close', () => this.#close())
    ctx.res.on('error', () => this.#close())
  }

  /** Writes an event without a limit: the caller awaits `flushed` before the next write. */
  write(bytes: Buffer): void {
    this.#position = undefined // each event has an id
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

  /** Ends the reply after its time. */
  endAlive(): void {
    this.end(this.#sign)
  }

  /** Ends the reply, with a last event or without one. */
  end(bytes?: Buffer | string): void {
    if (this.gone.aborted) return
    this.#response.end(bytes)
    this.#close()
  }

  /** A sign of life, with the position of a client that has received no event. */
  get #sign(): string {
    return `${this.#position === undefined ? '' : `id: ${this.#position}\n`}${HEARTBEAT}`
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
