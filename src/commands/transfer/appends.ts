import { expires } from './expiredFacts.ts'

/** Appends in progress: one commit of the store is enough for all of them. */
const AT_A_TIME = 32

/**
 * Appends facts of several streams at a time. Facts of one stream keep their order. Those of events and runs depend on no other
 * stream; all others wait for those that were added before.
 */
export class Appends {
  readonly #inProgress = new Map<string, Promise<void>>()
  #failure: { readonly error: unknown } | undefined

  /** Resolves when the append has begun. Rejects with the error of an earlier one. */
  async add(stream: string, append: () => Promise<void>): Promise<void> {
    if (!expires(stream)) {
      await this.finish()
      return append()
    }
    await this.#inProgress.get(stream)
    while (this.#inProgress.size >= AT_A_TIME) await Promise.race(this.#inProgress.values())
    this.#check()
    const end = append()
      .catch((error: unknown) => {
        this.#failure ??= { error }
      })
      .finally(() => this.#inProgress.delete(stream))
    this.#inProgress.set(stream, end)
  }

  /** Resolves when all appends are stored. Rejects with the error of one that is not. */
  async finish(): Promise<void> {
    await Promise.all(this.#inProgress.values())
    this.#check()
  }

  #check(): void {
    if (this.#failure) throw this.#failure.error
  }
}
