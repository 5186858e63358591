import { AppError } from '../errors.ts'

interface Owner {
  taken: number
  readonly waiting: (() => void)[]
}

/**
 * A number of equal places that organizations share. A place may be taken for long, so some always remain free.
 * F1: at most `total` places are taken. F2: an owner gets a further place only while it has fewer than `perFree` times the
 * free ones, so each newcomer finds some. F3: the last eighth of the places is for owners without any. F4: a place that
 * becomes free goes to the waiting owner with the fewest places; equal owners take turns.
 */
export class FairPlaces {
  readonly total: number
  readonly #perFree: number
  readonly #reserved: number
  /** In the order of their turns. */
  readonly #owners = new Map<string, Owner>()
  #taken = 0
  #waiting = 0

  constructor({ total, perFree }: { total: number; perFree: number }) {
    this.total = total
    this.#perFree = perFree
    this.#reserved = Math.floor(total / 8)
  }

  get taken(): number {
    return this.#taken
  }

  takenBy(owner: string): number {
    return this.#owners.get(owner)?.taken ?? 0
  }

  /** Whether requests of the owner wait for a place. */
  waitsFor(owner: string): boolean {
    return (this.#owners.get(owner)?.waiting.length ?? 0) > 0
  }

  /** The owners that wait, the one with the next turn first. */
  get waiting(): readonly string[] {
    if (this.#waiting === 0) return []
    return [...this.#owners]
      .filter(([, { waiting }]) => waiting.length > 0)
      .sort(([, a], [, b]) => a.taken - b.taken)
      .map(([name]) => name)
  }

  /** Whether the owner would get a place at once. */
  hasPlaceFor(owner: string): boolean {
    const entry = this.#owners.get(owner)
    return (entry === undefined || entry.waiting.length === 0) && this.#isFreeFor(entry?.taken ?? 0)
  }

  /** Takes a place at once, or returns false. */
  tryTake(owner: string): boolean {
    if (!this.hasPlaceFor(owner)) return false
    this.retake(owner)
    return true
  }

  /** Takes a place, or waits for one. Rejects with `conflict` if the signal aborts first. */
  async take(owner: string, signal?: AbortSignal): Promise<void> {
    if (this.tryTake(owner)) return
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const entry = this.#ownerOf(owner)
    const grant = () => {
      signal?.removeEventListener('abort', leave)
      resolve()
    }
    const leave = () => {
      entry.waiting.splice(entry.waiting.indexOf(grant), 1)
      this.#waiting--
      this.#forget(owner, entry)
      reject(new AppError('conflict', 'The wait for a place was ended'))
    }
    entry.waiting.push(grant)
    this.#waiting++
    if (signal?.aborted) leave()
    else signal?.addEventListener('abort', leave, { once: true })
    return promise
  }

  /** Takes a place even if none is free: the owner had one before and must continue. */
  retake(owner: string): void {
    this.#ownerOf(owner).taken++
    this.#taken++
  }

  giveBack(owner: string): void {
    const entry = this.#ownerOf(owner)
    entry.taken--
    this.#taken--
    this.#forget(owner, entry)
    if (this.#waiting > 0) this.#grant()
  }

  /** Lets every waiting request proceed, because the pool is closing. */
  openAll(): void {
    for (const [owner, { waiting }] of this.#owners)
      for (const grant of waiting.splice(0)) {
        this.#waiting--
        this.retake(owner)
        grant()
      }
  }

  #isFreeFor(taken: number): boolean {
    if (taken === 0) return this.#taken < this.total // F3
    return taken < this.#perFree * (this.total - this.#reserved - this.#taken) // F2
  }

  #grant(): void {
    for (;;) {
      let next: [string, Owner] | undefined
      for (const [name, owner] of this.#owners)
        if (owner.waiting.length > 0 && (!next || owner.taken < next[1].taken)) next = [name, owner] // F4
      if (!next || !this.#isFreeFor(next[1].taken)) return
      const [name, owner] = next
      const grant = owner.waiting.shift()
      this.#waiting--
      this.#owners.delete(name) // its next turn comes after those of the others
      this.#owners.set(name, owner)
      this.retake(name)
      grant?.()
    }
  }

  #ownerOf(name: string): Owner {
    const known = this.#owners.get(name)
    if (known) return known
    const owner: Owner = { taken: 0, waiting: [] }
    this.#owners.set(name, owner)
    return owner
  }

  #forget(name: string, owner: Owner): void {
    if (owner.taken === 0 && owner.waiting.length === 0) this.#owners.delete(name)
  }
}
