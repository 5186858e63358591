/** Certificates of custom domains. Adapters: none, because a proxy in front of the service does TLS. */
export interface Certificates {
  /** Resolves when the domain has a certificate; a repeated call changes nothing. Rejects with `unavailable`. */
  issue(domain: string): Promise<void>
  /** Discarding a missing certificate is not an error. */
  discard(domain: string): Promise<void>
}
