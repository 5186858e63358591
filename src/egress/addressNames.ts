import { BoundedMap } from '../boundedMap.ts'

const MAX_ADDRESSES = 256

/** Names of one address: hosts of a CDN share theirs with many. */
const MAX_NAMES = 8

/** The canonical names for which a child received addresses. The least recently found ones are forgotten. */
export class AddressNames {
  readonly #names = new BoundedMap<string, readonly string[]>(MAX_ADDRESSES)

  /** The names of an address, the last one that was found first. */
  of(address: string): readonly string[] {
    return this.#names.get(address) ?? []
  }

  add(address: string, name: string): void {
    const others = this.of(address).filter((other) => other !== name)
    this.#names.set(address, [name, ...others].slice(0, MAX_NAMES))
  }
}
