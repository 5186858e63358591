const UNKNOWN_AUTHORITY =
  'has a certificate of an unknown authority: set NODE_EXTRA_CA_CERTS=FILE, a file with the certificate of the authority'

/** What is wrong with a certificate, by the code with which Node refuses it. */
const PROBLEMS: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: UNKNOWN_AUTHORITY,
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_AUTHORITY,
  CERT_HAS_EXPIRED: 'has a certificate that has expired',
  CERT_NOT_YET_VALID: 'has a certificate that is not valid yet',
  ERR_TLS_CERT_ALTNAME_INVALID: 'has a certificate for another name',
}

/** Why `fetch` refused the certificate of an address, as the rest of a sentence; null for any other failure. */
export const certificateProblem = (error: unknown): string | null => {
  const { cause } = error instanceof Error ? error : {}
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  const problem = PROBLEMS[code]
  return problem === undefined ? null : `${problem} (${code})`
}
