import { setTimeout as delay } from 'node:timers/promises'
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { Distribution, Exposition, Metric } from '../../ports/metrics.ts'

/** Interval at which the delay of the event loop is measured, milliseconds. */
const LOOP_DELAY_MS = 20

/**
 * The time between two texts, milliseconds. Each text begins the measurement again, and without a value the delay would be NaN
 * and at least 292 years.
 */
const MEASURED_MS = 5 * LOOP_DELAY_MS

/** Serves the metrics of a node, and those of its process under the names that dashboards of Node.js expect. */
export const openExposition = (metrics: readonly Metric[]): Exposition => {
  const registry = new Registry()
  for (const metric of metrics) register(metric, registry)
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LOOP_DELAY_MS })
  const measure = () => delay(MEASURED_MS, undefined, { ref: false })
  let measured = measure()
  return {
    contentType: registry.contentType,
    async text() {
      const turn = measured
      measured = turn.then(measure)
      await turn
      return registry.metrics()
    },
  }
}

const register = (metric: Metric, registry: Registry): void => {
  const { name, help, labels: labelNames = [] } = metric
  const base = { name, help, labelNames: [...labelNames], registers: [registry] }
  switch (metric.kind) {
    case 'counter': {
      const counter: Counter = new Counter({
        ...base,
        async collect() {
          const samples = await metric.read()
          counter.reset()
          counter.remove({}) // the 0 of a metric without labels, which this node may not have
          for (const { labels = {}, value } of samples) counter.inc(labels, value)
        },
      })
      break
    }
    case 'gauge': {
      const gauge: Gauge = new Gauge({
        ...base,
        async collect() {
          const samples = await metric.read()
          gauge.reset()
          gauge.remove({})
          for (const { labels = {}, value } of samples) gauge.set(labels, value)
        },
      })
      break
    }
    case 'histogram':
      void new Distributions(base, metric.read)
      break
    default:
      metric satisfies never
  }
}

/** A histogram that was counted elsewhere. */
class Distributions extends Histogram {
  readonly #config: ConstructorParameters<typeof Histogram>[0]
  readonly #read: () => readonly Distribution[]

  constructor(config: ConstructorParameters<typeof Histogram>[0], read: () => readonly Distribution[]) {
    super(config)
    this.#config = config
    this.#read = read
  }

  /** The registry calls this, and not `get`, to convert a metric to text. */
  getForPromString() {
    const { name, help } = this.#config
    const values = this.#read().flatMap((distribution) => seriesOf(name, distribution))
    return Promise.resolve({ name, help, type: 'histogram', values })
  }
}

/** Buckets contain all values up to their bound, so each one includes those before it. */
const seriesOf = (name: string, { histogram: { bounds, counts, sum }, labels = {} }: Distribution) => {
  let count = 0
  const buckets = counts.map((inBucket, at) => {
    count += inBucket
    return {
      metricName: `${name}_bucket`,
      labels: { ...labels, le: String(bounds[at] ?? '+Inf') },
      value: count,
    }
  })
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: count },
  ]
}
