/** Looks records up. Adapters: the resolver of the system or servers given. */
export interface Dns {
  /**
   * What the CNAME records of a name point to, lower-cased and without a trailing dot; empty when there are none.
   * Rejects with `unavailable` when that could not be learned, which says nothing about the records.
   */
  cname(name: string): Promise<readonly string[]>
}
