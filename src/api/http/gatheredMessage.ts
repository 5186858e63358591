import { IncomingMessage } from 'node:http'
import { ByteChunks } from '../../loops/byteChunks.ts'

/** Bytes that are gathered before they become one chunk of the body. */
const GATHERED_BYTES = 16 << 10

/**
 * A request whose body has the chunks in which it is read from the connection. Those of the chunked encoding can have one
 * byte each, and each would cost more than a hundred bytes of memory and a turn of every reader.
 */
export class GatheredMessage extends IncomingMessage {
  readonly #gathered = new ByteChunks()
  #isFlushDue = false

  /** The parser calls this for each chunk, with all ticks in between, but without a turn of the event loop. */
  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    if (chunk === null) {
      this.#flush()
      return super.push(null)
    }
    this.#gathered.add(chunk)
    if (this.#gathered.length >= GATHERED_BYTES) return this.#flush()
    if (!this.#isFlushDue) {
      this.#isFlushDue = true
      setImmediate(() => {
        this.#isFlushDue = false
        this.#flush()
      })
    }
    return this.readableLength + this.#gathered.length < this.readableHighWaterMark
  }

  /** Returns whether more may be pushed. */
  #flush(): boolean {
    return this.#gathered.length === 0 || this.destroyed || super.push(this.#gathered.take())
  }
}
