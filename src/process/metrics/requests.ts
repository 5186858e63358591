import type { Metric } from '../../ports/metrics.ts'
import type { Sources } from './sources.ts'

/** Requests and live streams. */
export const requestMetrics = (sources: Sources): readonly Metric[] => {
  const { requests } = sources
  return [
    {
      kind: 'counter',
      name: 'svc_http_requests_total',
      help: 'Requests by method, route and status; the route is its path in the API description, empty if there is none',
      labels: ['method', 'route', 'status'],
      read: () => requests.requests,
    },
    {
      kind: 'histogram',
      name: 'svc_http_request_duration_seconds',
      help: 'Time until the reply to a request begins, without live streams',
      labels: ['method', 'route'],
      read: () => requests.durations,
    },
    {
      kind: 'counter',
      name: 'svc_http_requests_refused_total',
      help: 'Requests with an error reply, by the code in its body, such as rate_limit_exceeded or quota_exceeded',
      labels: ['code'],
      read: () => requests.refusals,
    },
    {
      kind: 'gauge',
      name: 'svc_sse_clients',
      help: 'Open live streams; only with the role api',
      read: () => (sources.openCounts ? [{ value: sources.openCounts.total('streams') }] : []),
    },
  ]
}
