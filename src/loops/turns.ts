/** Runs the work of each key one after the other, in the order of the calls. Work that fails does not stop the next. */
export class Turns {
  /** The end of the latest work, by key. */
  readonly #last = new Map<string, Promise<void>>()

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const turn = (this.#last.get(key) ?? Promise.resolve()).then(work)
    const over = turn.then(
      () => {},
      () => {},
    )
    this.#last.set(key, over)
    try {
      return await turn
    } finally {
      if (this.#last.get(key) === over) this.#last.delete(key)
    }
  }
}
