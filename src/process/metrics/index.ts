import type { Exposition, Metric } from '../../ports/metrics.ts'
import { openExposition } from '../engines.ts'
import { domainMetrics } from './domains.ts'
import { engineMetrics } from './engines.ts'
import { logMetrics } from './log.ts'
import { requestMetrics } from './requests.ts'
import { runMetrics } from './runs.ts'
import type { Sources } from './sources.ts'

/** Every metric of a node, whatever its roles are, so that all nodes describe the same ones. */
const metricsOf = (sources: Sources): readonly Metric[] => [
  ...engineMetrics(sources),
  ...logMetrics(sources),
  ...runMetrics(sources),
  ...domainMetrics(sources),
  ...requestMetrics(sources),
]

/** Returns what opens the metrics at their first request, because most nodes of small installations never serve them. */
export const lazyMetrics = (sources: Sources): (() => Promise<Exposition>) => {
  let opened: Promise<Exposition> | undefined
  return () => (opened ??= openExposition(metricsOf(sources)))
}
