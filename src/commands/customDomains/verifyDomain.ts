import { AppError, isAppError } from '../../errors.ts'
import { type AdvanceDeps, advanceDomain } from './advanceDomain.ts'
import type { Caller, CommandDeps } from '../deps.ts'
import { domainFor } from './domainFor.ts'
import { domainMessage } from './domainMessage.ts'

export interface DomainVerification {
  readonly domain_id: string
  readonly domain: string
  readonly status: 'validated' | 'pending_validation'
  /** What its owner must do next. */
  readonly message: string
}

/**
 * Checks the DNS records of a domain now (SPEC.md, Custom domains); the saga checks them regularly. Rejects with
 * `not_found`, or with `conflict` while the domain is being deleted.
 */
export const verifyDomain = async (
  deps: Pick<CommandDeps, 'aggregates' | 'views'> & AdvanceDeps,
  { domain_id }: { domain_id: string },
  { cause }: Caller,
): Promise<DomainVerification> => {
  const before = await domainFor(deps, cause.env_id, domain_id)
  if (before.status === 'deleting')
    throw new AppError('conflict', `domain: ${before.domain} is being deleted`)
  const found = await advanceDomain(deps, before, cause).then(
    ({ seen }) => (seen === null ? 'found no such record' : `found ${seen}`),
    (error: unknown) => {
      if (!isAppError(error, 'unavailable')) throw error
      return 'the DNS lookup failed or the resolvers disagree, try again'
    },
  )
  const doc = await domainFor(deps, cause.env_id, domain_id)
  const { domain, status } = doc
  if (status === 'pending_validation') {
    const record = `${doc.validation_cname_name} CNAME ${doc.validation_cname_value}`
    const message = doc.is_proved ? domainMessage(doc) : `Expected the DNS record ${record}; ${found}`
    return { domain_id, domain, status, message: message ?? '' }
  }
  const message = domainMessage(doc)
  return { domain_id, domain, status: 'validated', message: message ?? 'The domain is active' }
}
