import type { Metric } from '../../ports/metrics.ts'
import { type DirectoryDomain, LISTED_STATUSES } from '../../projections/domainDirectory.ts'
import type { Sources } from './sources.ts'

/** Custom domains and their certificates. Domains have no series of their own, because tenants choose their number. */
export const domainMetrics = (sources: Sources): readonly Metric[] => {
  const domains = (): readonly DirectoryDomain[] => [...(sources.node?.views.directory.domains.all() ?? [])]
  return [
    {
      kind: 'gauge',
      name: 'svc_domains',
      help: 'Custom domains; every node returns the same number',
      labels: ['status'],
      read: () => {
        const known = domains()
        return LISTED_STATUSES.map((status) => ({
          labels: { status },
          value: known.filter((domain) => domain.status === status).length,
        }))
      },
    },
    {
      kind: 'gauge',
      name: 'svc_domain_orders_failed',
      help: 'Custom domains whose last order of a certificate failed',
      read: () => [{ value: domains().filter(({ order_failed }) => order_failed).length }],
    },
    {
      kind: 'gauge',
      name: 'svc_certificate_expiry_timestamp_seconds',
      help: 'Seconds since 1970 at which the first certificate of an active custom domain expires; absent without one',
      read: () => {
        const expiries = domains().flatMap(({ status, certificate_expires_at: at }) =>
          status === 'active' && at !== null ? [Date.parse(at) / 1000] : [],
        )
        return expiries.length === 0 ? [] : [{ value: Math.min(...expiries) }]
      },
    },
  ]
}
