import { networkOf } from '../../ports/trustedProxies.ts'

/** Counts what each address has open, up to a limit. A client has all addresses of an IPv6 network. */
export class AddressLimit {
  readonly #max: number
  readonly #open = new Map<string, number>()

  constructor(max: number) {
    this.#max = max
  }

  /** Counts one more, unless the address is at its limit. The caller gives back what it took. */
  take(address: string): boolean {
    const network = networkOf(address)
    const open = this.#open.get(network) ?? 0
    if (open >= this.#max) return false
    this.#open.set(network, open + 1)
    return true
  }

  giveBack(address: string): void {
    const network = networkOf(address)
    const open = this.#open.get(network) ?? 0
    if (open > 1) this.#open.set(network, open - 1)
    else this.#open.delete(network)
  }
}
