/**
 * Bounds what one child can make the service do. N1: at most `MAX_SERVING` host calls are served at a time, and none is
 * begun while more than `MAX_UNREAD` bytes of replies wait for the child. N2: the service reads from the child only while
 * its budget of frames and bytes lasts, no host call waits and little is held. A child that floods its pipe waits.
 * N3: the children of one process share the bytes that are held and unread. N4: nothing that waits for the result of
 * a child run prevents reading, because this child may have to deliver it; so the number of awaited runs is bounded.
 */
import { AppError } from '../errors.ts'

/** Host calls of one child that are served at a time. `run` is exempt (N4). */
const MAX_SERVING = 100

/** Child runs that the runs of one child await, and those of all children together, which have equal shares. */
const MAX_AWAITED = 20_000
const MAX_AWAITED_BY_ALL = 100_000

/** Bytes that wait in the pipe to the child. Above this, no host call and no run begins. */
export const MAX_UNREAD = 16 << 20

/** A child with more unread bytes is ended: it does not read. */
export const MAX_UNREAD_EVER = 64 << 20

/** Bytes of host calls without a reply, and of results and output that are not stored. */
const MAX_HELD = 32 << 20

/**
 * The same for all children of this process together. Above these, only a child that holds little is read, and a host call
 * begins only for a child with few unread replies (N3): a small share is left to each.
 */
const MAX_HELD_BY_ALL = 96 << 20
const MAX_UNREAD_BY_ALL = 64 << 20
const SMALL_SHARE = 256 << 10

/** The intakes of living children. */
const intakes = new Set<Intake>()
let heldByAll = 0

const unreadByAll = (): number => {
  let unread = 0
  for (const intake of intakes) unread += intake.unread
  return unread
}

/** The fixed cost of a host call beside its bytes, so that a flood of small calls is bounded too. */
const HOST_CALL_BYTES = 1024

/** Frames and bytes of output and host calls per second; the burst is the whole output of two runs, or one large file. */
const FRAMES_PER_S = 5000
const FRAMES_BURST = 20_000
const BYTES_PER_S = 8 << 20
const BYTES_BURST = 96 << 20

/** A host call from its arrival to its reply. */
export interface HeldCall {
  /** Resolves when the call may be served; null: at once (N1). */
  readonly turn: Promise<void> | null
  /** To be called when its content takes no memory any more, although its reply is still to come. */
  readonly release: () => void
  readonly done: () => void
}

interface Pipe {
  /** Bytes that were sent and not read by the child. */
  readonly unread: number
  listen(yes: boolean): void
}

export class Intake {
  readonly #pipe: Pipe
  #frames = FRAMES_BURST
  #bytes = BYTES_BURST
  #held = 0
  #serving = 0
  #awaited = 0
  #listening = true
  #waiting: (() => void)[] = []
  #unreadMs = 0
  #ended = false

  constructor(pipe: Pipe) {
    this.#pipe = pipe
    intakes.add(this)
  }

  get unread(): number {
    return this.#pipe.unread
  }

  /** Holds the bytes of a result, or of output, until it is stored. */
  hold(bytes: number): () => void {
    this.#hold(bytes)
    this.#decide()
    return () => {
      this.#hold(-bytes)
      this.#proceed()
    }
  }

  /** Whether the service reads from the child. If not, the child cannot answer a ping. */
  get listening(): boolean {
    return this.#listening
  }

  /** Whether the child has used up its budget: then it is the reason why the service does not read from it. */
  get isFlooded(): boolean {
    return this.#frames <= 0 || this.#bytes <= 0
  }

  /** The time for which too many replies have waited for the child, milliseconds. */
  get unreadMs(): number {
    return this.#unreadMs
  }

  /** Counts a frame of output or a host call. */
  charge(bytes: number): void {
    this.#frames--
    this.#bytes -= bytes
    if (this.isFlooded) this.#decide()
  }

  /** Holds the bytes of a host call. It takes a place when `allowed` has resolved; null: at once. */
  take(size: number, allowed: Promise<void> | null): HeldCall {
    let places = 0
    const enter = (): Promise<void> | null => {
      if (this.#mayServe && this.#waiting.length === 0) {
        this.#serving += places = 1
        return null
      }
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#waiting.push(() => {
        this.#serving += places = 1
        resolve()
      })
      this.#decide()
      return promise
    }
    const release = this.#heldUntil(size)
    const turn = allowed ? allowed.then(() => enter() ?? undefined) : enter()
    this.#decide()
    const done = () => {
      this.#serving -= places
      release()
    }
    return { turn, release, done }
  }

  /** The same for a call that awaits a child run (N4). Throws `quota_exceeded` if the child awaits too many. */
  takeAwaiting(size: number): HeldCall {
    const most = Math.min(MAX_AWAITED, Math.floor(MAX_AWAITED_BY_ALL / intakes.size))
    if (this.#awaited >= most)
      throw new AppError(
        'quota_exceeded',
        `run: the process awaits ${most} child runs, the most at a time: await some before you run more`,
      )
    this.#awaited++
    const release = this.#heldUntil(size)
    this.#decide()
    const done = () => {
      this.#awaited--
      release()
    }
    return { turn: null, release, done }
  }

  /** Holds the bytes of a host call until the returned function is called for the first time. */
  #heldUntil(size: number): () => void {
    let bytes = size + HOST_CALL_BYTES
    this.#hold(bytes)
    return () => {
      this.#hold(-bytes)
      bytes = 0
      this.#proceed()
    }
  }

  /** The child has ended: it reads nothing any more, and what it asked before is still served. */
  end(): void {
    this.#ended = true
    intakes.delete(this)
    this.#proceed()
  }

  #hold(bytes: number): void {
    this.#held += bytes
    heldByAll += bytes
  }

  tick(elapsedMs: number): void {
    const seconds = elapsedMs / 1000
    this.#frames = Math.min(FRAMES_BURST, this.#frames + FRAMES_PER_S * seconds)
    this.#bytes = Math.min(BYTES_BURST, this.#bytes + BYTES_PER_S * seconds)
    this.#unreadMs = this.#pipe.unread > MAX_UNREAD ? this.#unreadMs + elapsedMs : 0
    if (!this.#listening) this.#proceed()
  }

  get #mayServe(): boolean {
    if (this.#serving >= MAX_SERVING) return false
    const { unread } = this.#pipe
    if (this.#ended || unread <= SMALL_SHARE) return true
    return unread <= MAX_UNREAD && unreadByAll() <= MAX_UNREAD_BY_ALL
  }

  #proceed(): void {
    let begun = 0
    while (begun < this.#waiting.length && this.#mayServe) this.#waiting[begun++]?.()
    this.#waiting = begun > 0 ? this.#waiting.slice(begun) : this.#waiting
    this.#decide()
  }

  /** N2 */
  #decide(): void {
    const mayHold = this.#held <= (heldByAll > MAX_HELD_BY_ALL ? SMALL_SHARE : MAX_HELD)
    const yes = !this.isFlooded && mayHold && this.#waiting.length === 0
    if (yes === this.#listening || this.#ended) return
    this.#listening = yes
    this.#pipe.listen(yes)
  }
}
