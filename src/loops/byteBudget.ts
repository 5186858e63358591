import { AppError } from '../errors.ts'

/** Gives taken bytes back. Only the first call has an effect. */
export type GiveBack = () => void

interface Waiting {
  readonly bytes: number
  readonly grant: () => void
}

interface Owner {
  held: number
  readonly waiting: Waiting[]
}

/** Seconds that a refused client waits before its next attempt. */
const RETRY_AFTER_S = 2

/**
 * The memory for one purpose, shared by organizations. B1: the bytes taken never exceed the total. B2: one owner holds
 * at most half of them. B3: owners that wait take turns, and a large request is not overtaken for ever. B4: a wait
 * over `waitMs` is refused with `unavailable`.
 */
export class ByteBudget {
  readonly #name: string
  readonly #total: number
  readonly #waitMs: number
  /** In the order of their turns. */
  readonly #owners = new Map<string, Owner>()
  #held = 0
  #waiting = 0

  /** `name` completes the refusal: `The memory for <name> is in use`. */
  constructor({ name, totalBytes, waitMs }: { name: string; totalBytes: number; waitMs: number }) {
    this.#name = name
    this.#total = totalBytes
    this.#waitMs = waitMs
  }

  get held(): number {
    return this.#held
  }

  /** Takes bytes for an owner at once, or undefined if they are not available. */
  tryTake(owner: string, wanted: number): GiveBack | undefined {
    const bytes = Math.min(wanted, this.#total / 2)
    const entry = this.#owners.get(owner)
    const isFree = (entry?.held ?? 0) + bytes <= this.#total / 2 && this.#held + bytes <= this.#total
    return this.#waiting === 0 && isFree ? this.#grant(owner, bytes) : undefined
  }

  /** Takes bytes for an owner, or waits for them. A request for more than half of the total takes half. */
  async take(owner: string, wanted: number, signal?: AbortSignal): Promise<GiveBack> {
    return this.tryTake(owner, wanted) ?? this.#wait(owner, Math.min(wanted, this.#total / 2), signal)
  }

  #wait(owner: string, bytes: number, signal: AbortSignal | undefined): Promise<GiveBack> {
    return new Promise((resolve, reject) => {
      const entry = this.#ownerOf(owner)
      const leave = (error: Error) => {
        entry.waiting.splice(entry.waiting.indexOf(waiting), 1)
        settle()
        this.#forget(owner, entry)
        reject(error)
        this.#pump() // the next request may need less
      }
      const settle = () => {
        this.#waiting--
        clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
      }
      const onAbort = () => leave(new AppError('unavailable', 'The client has left'))
      const timer = setTimeout(() => leave(this.#refusal()), this.#waitMs).unref()
      const waiting: Waiting = {
        bytes,
        grant: () => {
          settle()
          resolve(this.#grant(owner, bytes))
        },
      }
      entry.waiting.push(waiting)
      this.#waiting++
      if (signal?.aborted) return onAbort()
      signal?.addEventListener('abort', onAbort, { once: true })
      this.#pump()
    })
  }

  #refusal(): AppError {
    return new AppError(
      'unavailable',
      `The memory for ${this.#name} is in use; send the request again later`,
      {
        data: { retryAfter: RETRY_AFTER_S },
      },
    )
  }

  #grant(owner: string, bytes: number): GiveBack {
    const entry = this.#ownerOf(owner)
    entry.held += bytes
    this.#held += bytes
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      entry.held -= bytes
      this.#held -= bytes
      this.#forget(owner, entry)
      this.#pump()
    }
  }

  /** Grants what fits, one request of each owner in turn. */
  #pump(): void {
    for (let found = true; found && this.#waiting > 0;) {
      found = false
      for (const [owner, entry] of this.#owners) {
        const [next] = entry.waiting
        if (!next || entry.held + next.bytes > this.#total / 2) continue
        if (this.#held + next.bytes > this.#total) return // B3: smaller requests of others do not overtake it
        entry.waiting.shift()
        next.grant()
        this.#owners.delete(owner) // its next turn comes after those of the others
        this.#owners.set(owner, entry)
        found = true
        break
      }
    }
  }

  #ownerOf(owner: string): Owner {
    const known = this.#owners.get(owner)
    if (known) return known
    const entry: Owner = { held: 0, waiting: [] }
    this.#owners.set(owner, entry)
    return entry
  }

  #forget(owner: string, entry: Owner): void {
    if (entry.held === 0 && entry.waiting.length === 0 && this.#owners.get(owner) === entry)
      this.#owners.delete(owner)
  }
}

/** Takes bytes during some work. */
export const holding = async <T>(
  budget: ByteBudget,
  { owner, bytes, signal }: { owner: string; bytes: number; signal?: AbortSignal },
  work: () => Promise<T>,
): Promise<T> => {
  const giveBack = await budget.take(owner, bytes, signal)
  try {
    return await work()
  } finally {
    giveBack()
  }
}
