import type { DomainEvent } from '../../events/index.ts'
import { buildKey } from '../../ports/runtime.ts'

interface Blob {
  readonly key: string
  /** Bytes. */
  readonly size: number
}

/**
 * Checks the sizes in facts, which count as storage of the plan.
 * Z1: content that is in the file has its own size.
 * Z2: no size is below 0, and nothing subtracts more than was added before.
 */
export class ImportedSizes {
  readonly #stored = new Map<string, number>()
  /** The sizes that count now, by the path of a file or the id of a build. */
  readonly #counted = new Map<string, number>()

  /** Notes a blob of the file, before the facts that name it. */
  note({ key, size }: Blob): void {
    this.#stored.set(key, size)
  }

  /** Returns the fact with a size that can be subtracted. Throws an error with the reason. */
  checked(fact: DomainEvent): DomainEvent {
    switch (fact.type) {
      case 'FileStored':
        this.#checkContent(fact)
        if (fact.replaced) this.#subtract(fact.path, fact.replaced.size)
        this.#counted.set(fact.path, fact.size)
        return fact
      case 'FileDeleted':
        this.#subtract(fact.path, fact.former.size)
        return fact
      case 'BuildUploaded': {
        const list = fact.functions_ref
        this.#checkContent({ key: buildKey(fact), size: fact.size })
        if (list) this.#checkContent(list)
        this.#counted.set(fact.build_id, fact.size + (list?.size ?? 0))
        return fact
      }
      case 'BuildDeleted': {
        // An import by an earlier version left out lists of functions, whose sizes the deletion contains.
        const size = Math.min(fact.size, this.#counted.get(fact.build_id) ?? 0)
        this.#subtract(fact.build_id, size)
        return { ...fact, size }
      }
      default:
        return fact
    }
  }

  #checkContent({ key, size }: Blob): void {
    const stored = this.#stored.get(key)
    const isOther = stored !== undefined && stored !== size // Z1
    if (isOther) throw new Error(`size: expected ${stored}, which ${key} has, got ${size}`)
    if (size < 0) throw new Error(`size: expected bytes, got ${size}`) // Z2
  }

  #subtract(counted: string, size: number): void {
    const most = this.#counted.get(counted) ?? 0
    if (size < 0 || size > most) throw new Error(`size: expected 0 to ${most}, got ${size}`) // Z2
    this.#counted.delete(counted)
  }
}
