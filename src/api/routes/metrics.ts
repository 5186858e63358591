import type { MetricsDeps } from '../deps.ts'
import { type OperatorRoute, operatorRoute, own } from '../route.ts'

/** It is served before the API has started and on nodes without it. */
export const metricsRoute: OperatorRoute<MetricsDeps> = operatorRoute({
  method: 'GET',
  path: '/metrics',
  operationId: 'getMetrics',
  summary: 'Get the metrics of this node',
  description:
    'In the text format of Prometheus. Each node returns its own metrics: add those of all nodes. The page on operations ' +
    'lists their names and units.',
  tag: 'Health',
  errors: ['unavailable'],
  reply: { kind: 'bare', type: 'text/plain' },
  handle: async ({ ctx, deps }) => {
    const exposition = await deps.metrics()
    ctx.body = await exposition.text()
    ctx.set('Content-Type', exposition.contentType) // after the body, which would set its own
    return own
  },
})
