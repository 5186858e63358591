import type { Certificates } from '../../ports/certificates.ts'

/** Issues no certificates, because a proxy in front of the service terminates TLS. */
export const noCertificates: Certificates = {
  issue: async () => {},
  discard: async () => {},
}
