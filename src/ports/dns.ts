/** Looks up DNS records. Adapters: the resolver of the system, or the configured servers. */
export interface Dns {
  /**
   * Returns the targets of the CNAME records of a name, in lower case and without a trailing dot; empty when there are
   * none. Rejects with `unavailable` when the lookup failed, because the records are then unknown.
   */
  cname(name: string): Promise<readonly string[]>
}
