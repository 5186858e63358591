/** An error of an authority (RFC 8555, 6.7). */
export interface Problem {
  readonly type?: string
  readonly detail?: string
}

/** What the owner of the domain or the operator can do, by the type of the problem without its prefix. */
const ADVICE: Readonly<Record<string, string>> = {
  caa: 'allow the certificate authority in the CAA records of the domain',
  dns: 'check the DNS records of the domain',
  unauthorized: 'check the DNS record of the challenge',
  incorrectResponse: 'check the DNS record of the challenge',
  rejectedIdentifier: 'the authority issues no certificates for this name',
  rateLimited: 'its rate limit is reached; the order is repeated later',
  externalAccountRequired: 'the operator must choose an authority without external accounts',
  userActionRequired: 'the operator must accept its new terms',
  accountDoesNotExist: 'the order is repeated with a new account',
}

/** Reads an error of an authority, which may have any form. */
export const problemOf = (value: unknown): Problem => {
  if (typeof value !== 'object' || value === null) return {}
  const { type, detail } = value as Record<string, unknown>
  return { ...(typeof type === 'string' && { type }), ...(typeof detail === 'string' && { detail }) }
}

const PREFIX = 'urn:ietf:params:acme:error:'

export const kindOf = ({ type = '' }: Problem): string =>
  type.startsWith(PREFIX) ? type.slice(PREFIX.length) : ''

/** Longest text of an authority that is stored. */
const MAX_DETAIL = 300

/** Returns the message for the owner of a domain. */
export const refusalOf = (problem: Problem): string => {
  const advice = ADVICE[kindOf(problem)]
  const detail = (problem.detail ?? 'no reason given').slice(0, MAX_DETAIL).replace(/\.$/, '')
  return `The certificate authority refused the certificate (${detail})${advice === undefined ? '' : `: ${advice}`}`
}
