/** A certificate of one domain, with its private key. */
export interface Certificate {
  /** PEM, the certificate of the domain first. */
  readonly chain: string
  /** PEM. */
  readonly privateKey: string
  /** ISO 8601 UTC. */
  readonly not_before: string
  readonly not_after: string
}

/** Certificates of custom domains, from an authority. Without an adapter, a proxy in front of the service does TLS. */
export interface Certificates {
  /**
   * Orders a certificate. `publish` must resolve when the values are the TXT record of `_acme-challenge.<domain>`.
   * Rejects with `unavailable` and a message for the owner of the domain.
   */
  issue(domain: string, publish: (values: readonly string[]) => Promise<void>): Promise<Certificate>
  /** Revokes a certificate that this service ordered. An expired or revoked one is no error. Rejects with `unavailable`. */
  revoke(chain: string): Promise<void>
}
