/** Looks up DNS records. All configured resolvers must agree. Adapter: the resolvers of the system, or the configured ones. */
export interface Dns {
  /**
   * Returns the targets of the CNAME records of a name, in lower case and without a trailing dot; empty when there are
   * none. Rejects with `unavailable` when a lookup failed or the resolvers disagree, because the records are then unknown.
   */
  cname(name: string): Promise<readonly string[]>
  /** Returns the values of the TXT records of a name, like `cname`. */
  txt(name: string): Promise<readonly string[]>
}
