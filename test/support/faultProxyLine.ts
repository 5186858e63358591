import type { Socket } from 'node:net'
import { clock } from '../../src/clock.ts'

/** The current fault. All connections of a proxy share one object. */
export interface Fault {
  /** Neither bytes nor ends pass. */
  held: boolean
  delayMs: number
}

interface Sent {
  /** Null if the sender has ended its side. */
  readonly bytes: Buffer | null
  readonly at: number
}

/** Bytes in transit in one direction before the sender is paused, like a TCP window. */
const MAX_UNDER_WAY = 1 << 20

/** One direction of a connection: passes chunks from `from` to `to` in order, each at its time. */
export class Line {
  readonly #from: Socket
  readonly #to: Socket
  readonly #fault: Fault
  readonly #underWay: Sent[] = []
  #bytes = 0
  #writing = false
  #timer: NodeJS.Timeout | undefined

  constructor(from: Socket, to: Socket, fault: Fault) {
    this.#from = from
    this.#to = to
    this.#fault = fault
    from.on('data', (bytes: Buffer) => this.#take(bytes))
    from.on('end', () => this.#take(null))
    this.move()
  }

  /** Passes everything that may pass now. Must be called when the fault changes. */
  move(): void {
    clearTimeout(this.#timer)
    if (this.#to.destroyed) return
    if (this.#fault.held || this.#bytes >= MAX_UNDER_WAY) this.#from.pause()
    else this.#from.resume()
    const next = this.#underWay[0]
    if (!next || this.#writing || this.#fault.held) return
    const waitMs = next.at + this.#fault.delayMs - clock.monotonic()
    if (waitMs > 0) {
      this.#timer = setTimeout(() => this.move(), waitMs)
      return
    }
    this.#underWay.shift()
    if (next.bytes === null) this.#to.end()
    else if (this.#to.writableEnded) this.#passed(next.bytes)
    else this.#write(next.bytes)
  }

  #take(bytes: Buffer | null): void {
    this.#underWay.push({ bytes, at: clock.monotonic() })
    this.#bytes += bytes?.length ?? 0
    this.move()
  }

  /** Writes one chunk at a time, so that `held` can still stop the others. */
  #write(bytes: Buffer): void {
    this.#writing = true
    this.#to.write(bytes, () => {
      this.#writing = false
      this.#passed(bytes)
    })
  }

  #passed(bytes: Buffer): void {
    this.#bytes -= bytes.length
    this.move()
  }
}
