import { AppError, isAppError } from '../../errors.ts'
import { advanceDomain } from './advanceDomain.ts'
import type { Caller, CommandDeps } from '../deps.ts'
import { domainFor } from './domainFor.ts'

export interface DomainVerification {
  readonly domain_id: string
  readonly domain: string
  readonly status: 'validated' | 'pending_validation'
  /** The DNS record that its owner must create next. */
  readonly message: string
}

/**
 * Checks the DNS records of a domain now (SPEC.md, Custom domains); the saga checks them regularly. Rejects with
 * `not_found`, or with `conflict` while the domain is being deleted.
 */
export const verifyDomain = async (
  deps: Pick<CommandDeps, 'aggregates' | 'views' | 'dns' | 'certificates' | 'domainsZone'>,
  { domain_id }: { domain_id: string },
  { cause }: Caller,
): Promise<DomainVerification> => {
  const before = await domainFor(deps, cause.env_id, domain_id)
  if (before.status === 'deleting')
    throw new AppError('conflict', `domain: ${before.domain} is being deleted`)
  const found = await advanceDomain(deps, before, cause.correlation_id).then(
    ({ seen }) => (seen === null ? 'found no such record' : `found ${seen}`),
    (error: unknown) => {
      if (!isAppError(error, 'unavailable')) throw error
      return 'the DNS lookup failed, try again'
    },
  )
  const { domain, status, ...doc } = await domainFor(deps, cause.env_id, domain_id)
  if (status === 'pending_validation') {
    const record = `${doc.validation_cname_name} CNAME ${doc.validation_cname_value}`
    return { domain_id, domain, status, message: `Expected the DNS record ${record}; ${found}` }
  }
  const message =
    status === 'active'
      ? 'The domain is active'
      : `The domain is validated. Now create the DNS record ${domain} CNAME ${doc.routing_domain}`
  return { domain_id, domain, status: 'validated', message }
}
