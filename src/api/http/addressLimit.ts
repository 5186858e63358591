/** Counts what each address has open, up to a limit. */
export class AddressLimit {
  readonly #max: number
  readonly #open = new Map<string, number>()

  constructor(max: number) {
    this.#max = max
  }

  /** Counts one more, unless the address is at its limit. The caller gives back what it took. */
  take(address: string): boolean {
    const open = this.#open.get(address) ?? 0
    if (open >= this.#max) return false
    this.#open.set(address, open + 1)
    return true
  }

  giveBack(address: string): void {
    const open = this.#open.get(address) ?? 0
    if (open > 1) this.#open.set(address, open - 1)
    else this.#open.delete(address)
  }
}
