import type { SandboxedProcess } from './childProcess.ts'
import { cpuShare } from './cpuShare.ts'
import { ProtocolViolation } from './frames.ts'
import type { SandboxOptions } from './limits.ts'

/** The time in which a child without runs must answer a ping, milliseconds. */
const REST_MS = 1000
/** After this time without an answer, no run is sent to the child. */
const QUIET_MS = 200
/** At least this share of the silence counts, so that a child that waits for a processor all the time is noticed too. */
const LEAST_SHARE = 1 / 10

/** The runs of a child, as its pulse needs to know them. */
interface Activity {
  readonly runs: number
  /** Monotonic milliseconds since when it has no runs. */
  readonly idleSince: number
  /** Whether the service reads from the child. If not, the child cannot answer. */
  readonly listening: boolean
}

/** The answer to a ping decides this: `awake` children may get runs, and `resting` ones may be frozen. */
type Answered = 'awake' | 'resting'

/** The meaning of silence: a child without runs is replaced, another one is killed. */
type Silence = 'restless' | 'unresponsive'

/**
 * Pings, freezes and wakes one ready child.
 * P1: silence counts only while this process was running and the child did not wait for a processor: a stalled service
 * or an overloaded machine must not kill healthy children.
 * P2: a child without runs is asked once and then frozen, so that nothing of an ended run continues.
 * P3: a thawed child gets runs after it has answered: something of an ended run could continue in it.
 */
export class Pulse {
  readonly #process: Pick<SandboxedProcess, 'send' | 'freeze' | 'thaw' | 'processorUse'>
  readonly #options: Pick<SandboxOptions, 'heartbeatMs' | 'pingMs' | 'tickMs'>
  /** `quietMs`: since the ping; `silentMs`: the part of it in which the child could have answered. */
  #ping = { n: 0, pending: false, quietMs: 0, silentMs: 0, at: 0 }
  /** The processor time of the child at the last tick of a silence; null if it is not known. */
  #usedMs: number | null = null
  #state: 'awake' | 'frozen' | 'waking' = 'awake'

  constructor(
    process: Pick<SandboxedProcess, 'send' | 'freeze' | 'thaw' | 'processorUse'>,
    options: Pick<SandboxOptions, 'heartbeatMs' | 'pingMs' | 'tickMs'>,
  ) {
    this.#process = process
    this.#options = options
  }

  /** Whether the child may get runs. */
  get isAwake(): boolean {
    return this.#state === 'awake'
  }

  /** Whether a ping has had no answer for a while. */
  get isQuiet(): boolean {
    return this.#ping.pending && this.#ping.quietMs >= QUIET_MS
  }

  /** Monotonic milliseconds since when the child may have been silent; infinite after an answer. */
  get silentSince(): number {
    return this.#ping.pending ? this.#ping.at - this.#options.pingMs : Infinity
  }

  /** Sends a ping when it is due, and counts the silence after it. */
  tick(now: number, elapsedMs: number, { runs, idleSince, listening }: Activity): Silence | null {
    const { heartbeatMs, pingMs, tickMs } = this.#options
    const { pending, at } = this.#ping
    if (this.#state === 'frozen') return null
    if (!pending) {
      if (runs > 0 ? now - at >= pingMs : now - idleSince >= tickMs) this.#send(now)
      return null
    }
    if (!listening) return null
    const passedMs = Math.min(elapsedMs, 2 * tickMs) // P1
    this.#ping.quietMs += passedMs
    this.#ping.silentMs += passedMs * this.#share(elapsedMs)
    if (runs === 0 && this.#ping.silentMs >= REST_MS) return 'restless'
    return this.#ping.silentMs >= heartbeatMs ? 'unresponsive' : null
  }

  /** Takes the answer to the ping `n`. Throws a `ProtocolViolation` for any other. */
  answer(n: number): Answered {
    if (n !== this.#ping.n || !this.#ping.pending)
      throw new ProtocolViolation(`Expected a pong for ping ${this.#ping.n}, got one for ${n}`)
    this.#ping = { ...this.#ping, pending: false, quietMs: 0, silentMs: 0 }
    if (this.#state !== 'waking') return 'resting'
    this.#state = 'awake'
    return 'awake'
  }

  /**
   * The share of the time since the last tick in which the child could have answered: a child that is ready could do so
   * while it had a processor. The share is assumed if it is not known, or if the child may wait for its own threads.
   */
  #share(elapsedMs: number): number {
    const before = this.#usedMs
    const use = this.#process.processorUse()
    this.#usedMs = use && use.usedMs
    if (!use?.isReady || before === null) return cpuShare()
    return Math.max(LEAST_SHARE, Math.min(1, (use.usedMs - before) / elapsedMs))
  }

  freeze(): void {
    this.#state = 'frozen'
    this.#process.freeze()
  }

  /** Thaws a frozen child, which is awake after its answer (P3). Returns false if the child was not frozen. */
  wake(now: number): boolean {
    if (this.#state !== 'frozen') return false
    this.#state = 'waking'
    this.#process.thaw()
    this.#send(now)
    return true
  }

  #send(now: number): void {
    const n = this.#ping.n + 1
    this.#ping = { n, pending: true, quietMs: 0, silentMs: 0, at: now }
    this.#usedMs = null
    this.#process.send({ type: 'ping', n })
  }
}
