import { clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import type { CollectionSpec } from '../../ports/readModels.ts'
import type { Registry } from './registry.ts'

/** A pointer is trusted for this time after it was read. Dropping waits longer. */
export const POINTER_MS = 1000

interface Pointer {
  readonly spec: CollectionSpec | null
  readonly askedAt: number
}

/**
 * Knows the live version of each collection. Invariants:
 * L1: a version is dropped no earlier than `POINTER_MS` after another went live.
 * L2: a read counts only if its version was still live at the end, or if its pointer was read less than `POINTER_MS`
 *     before the end. With L1, nothing was dropped during the read.
 */
export class Live {
  readonly #registry: Registry
  readonly #pointers = new Map<string, Promise<Pointer>>()

  constructor(registry: Registry) {
    this.#registry = registry
  }

  /** Reads the live version, or `spec` while none is live. Repeats the read if another version went live (L2). */
  async read<T>(spec: CollectionSpec, work: (live: CollectionSpec) => Promise<T>): Promise<T> {
    for (let pointer = await this.#current(spec.name); ;) {
      const result = await work(pointer.spec ?? spec)
      const later = await this.#current(spec.name)
      if (later.spec?.version === pointer.spec?.version) return result
      pointer = later
    }
  }

  /** Yields every row of the live version. Throws `unavailable` at the end if that version was dropped. */
  async *scan<T>(
    spec: CollectionSpec,
    rowsOf: (live: CollectionSpec) => AsyncIterable<T>,
  ): AsyncGenerator<T> {
    const begun = (await this.#current(spec.name)).spec ?? spec
    yield* rowsOf(begun)
    const ended = (await this.#current(spec.name)).spec ?? spec
    if (ended.version === begun.version || (await this.#registry.knows(begun))) return
    throw new AppError('unavailable', `${spec.name} v${begun.version} was dropped during the read`)
  }

  /** Reads the pointer again before the next read. */
  forget(name: string): void {
    this.#pointers.delete(name)
  }

  async #current(name: string): Promise<Pointer> {
    const known = await this.#pointers.get(name)
    return known && clock.monotonic() - known.askedAt < POINTER_MS ? known : this.#ask(name)
  }

  /** Concurrent callers share one request. */
  #ask(name: string): Promise<Pointer> {
    const askedAt = clock.monotonic()
    const asked = this.#registry.live(name).then((spec) => ({ spec, askedAt }))
    this.#pointers.set(name, asked)
    asked.catch(() => {
      if (this.#pointers.get(name) === asked) this.#pointers.delete(name)
    })
    return asked
  }
}
