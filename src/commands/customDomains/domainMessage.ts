import type { DomainDoc } from '../../projections/customDomains.ts'

/** What the owner of a domain must do or know now; null if nothing. */
export const domainMessage = (doc: DomainDoc): string | null => {
  const { status, domain, routing_domain, failure, diverted, certificate } = doc
  const failed = failure && `${failure.message}. The next attempt is at ${failure.retry_at}`
  switch (status) {
    case 'pending_validation': {
      const record = `Create the DNS record ${doc.validation_cname_name} CNAME ${doc.validation_cname_value}`
      if (!doc.is_proved) return record
      if (diverted) return `${diverted.message}. ${record}`
      return failed ?? 'The DNS record was found. The certificate is being issued'
    }
    case 'validated':
    case 'provisioning':
      return diverted?.message ?? failed ?? `Create the DNS record ${domain} CNAME ${routing_domain}`
    case 'active':
      if (diverted) return `${diverted.message}. Create the DNS record ${domain} CNAME ${routing_domain}`
      return failed && certificate
        ? `The certificate could not be renewed and expires at ${certificate.not_after}: ${failed}`
        : failed
    case 'deleting':
      return 'The domain is being removed'
    default:
      return status satisfies never
  }
}
