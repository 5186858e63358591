import type { Socket } from 'node:net'
import { clock } from '../../src/clock.ts'

/** What befalls everything that passes; one object for all connections of a proxy. */
export interface Weather {
  /** Nothing passes, neither bytes nor ends. */
  held: boolean
  delayMs: number
}

interface Sent {
  /** null: the sender has ended its side. */
  readonly bytes: Buffer | null
  readonly at: number
}

/** Bytes under way in one direction before the sender is paused, as a TCP window would. */
const MAX_UNDER_WAY = 1 << 20

/** One direction of a connection: what comes from `from` goes to `to`, in order, each when its time has come. */
export class Line {
  readonly #from: Socket
  readonly #to: Socket
  readonly #weather: Weather
  readonly #underWay: Sent[] = []
  #bytes = 0
  #writing = false
  #timer: NodeJS.Timeout | undefined

  constructor(from: Socket, to: Socket, weather: Weather) {
    this.#from = from
    this.#to = to
    this.#weather = weather
    from.on('data', (bytes: Buffer) => this.#take(bytes))
    from.on('end', () => this.#take(null))
    this.move()
  }

  /** Passes what may pass now; to be called when the weather changes. */
  move(): void {
    clearTimeout(this.#timer)
    if (this.#to.destroyed) return
    if (this.#weather.held || this.#bytes >= MAX_UNDER_WAY) this.#from.pause()
    else this.#from.resume()
    const next = this.#underWay[0]
    if (!next || this.#writing || this.#weather.held) return
    const waitMs = next.at + this.#weather.delayMs - clock.monotonic()
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

  /** One write at a time, so that nothing waits in the socket where `held` no longer reaches it. */
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
