import type { Certificates } from '../../ports/certificates.ts'

/** A proxy in front of the service does TLS. */
export const noCertificates: Certificates = {
  issue: async () => {},
  discard: async () => {},
}
