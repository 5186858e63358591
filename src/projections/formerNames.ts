/** Names of an organization that are remembered, of at most 253 bytes each. */
const MAX_PER_ORG = 1000

/**
 * The names that were proved custom domains once, the latest of each organization: one that registers and deletes domains again
 * and again displaces its own names only.
 */
export class FormerNames {
  /** The organization that proved a name last. */
  readonly #orgOf = new Map<string, string>()
  /** The names of each organization, the latest last. */
  readonly #ofOrg = new Map<string, Set<string>>()

  has(name: string): boolean {
    return this.#orgOf.has(name)
  }

  add({ domain, org_id }: { readonly domain: string; readonly org_id: string }): void {
    this.#forget(domain)
    const names = this.#ofOrg.get(org_id) ?? new Set()
    this.#ofOrg.set(org_id, names.add(domain))
    this.#orgOf.set(domain, org_id)
    const [oldest] = names
    if (names.size > MAX_PER_ORG && oldest !== undefined) this.#forget(oldest)
  }

  #forget(name: string): void {
    this.#ofOrg.get(this.#orgOf.get(name) ?? '')?.delete(name)
    this.#orgOf.delete(name)
  }
}
