/** Certificates of custom domains. Adapters: none, where a proxy in front of the service does TLS. */
export interface Certificates {
  /** Resolves when there is one; asked again, it is the same. Rejects with `unavailable`. */
  issue(domain: string): Promise<void>
  /** Removing what is not there is no error. */
  discard(domain: string): Promise<void>
}
