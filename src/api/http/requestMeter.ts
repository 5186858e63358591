import { STATUS_CODES } from 'node:http'
import type { Context } from 'koa'
import { clock } from '../../clock.ts'
import type { ErrorCode } from '../../errors.ts'
import { Histogram, SHORT } from '../../ports/histogram.ts'
import type { Distribution, Sample } from '../../ports/metrics.ts'

/** Other methods count together, so that a client cannot invent labels. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

interface Counted {
  readonly method: string
  /** The path in the route table; empty for requests without a route. */
  readonly route: string
  readonly byStatus: Map<number, number>
  readonly durations: Histogram
}

/** Counts the requests of this node by route, never by their own path: the number of its series is bounded. */
export class RequestMeter {
  readonly #byRoute = new Map<string, Map<string, Counted>>()
  readonly #refused = new Map<ErrorCode, number>()

  /** Counts a request whose reply begins. `beganAt`: monotonic milliseconds. A live stream has no duration. */
  replied({ method, state, respond, res }: Context, beganAt: number): void {
    const { byStatus, durations } = this.#countedOf(METHODS.has(method) ? method : 'other', state.route ?? '')
    byStatus.set(res.statusCode, (byStatus.get(res.statusCode) ?? 0) + 1)
    if (respond !== false) durations.observe((clock.monotonic() - beganAt) / 1000)
  }

  /** Counts a request that is refused with an error body. */
  refused(code: ErrorCode): void {
    this.#refused.set(code, (this.#refused.get(code) ?? 0) + 1)
  }

  get requests(): readonly Sample[] {
    return this.#all.flatMap(({ method, route, byStatus }) => {
      const byLabel = new Map<string, number>()
      for (const [status, count] of byStatus) {
        const label = labelOf(status)
        byLabel.set(label, (byLabel.get(label) ?? 0) + count)
      }
      return [...byLabel].map(([status, value]) => ({ labels: { method, route, status }, value }))
    })
  }

  get durations(): readonly Distribution[] {
    return this.#all
      .filter(({ durations }) => durations.count > 0)
      .map(({ method, route, durations }) => ({ labels: { method, route }, histogram: durations }))
  }

  get refusals(): readonly Sample[] {
    return [...this.#refused].map(([code, value]) => ({ labels: { code }, value }))
  }

  get #all(): readonly Counted[] {
    return [...this.#byRoute.values()].flatMap((byMethod) => [...byMethod.values()])
  }

  #countedOf(method: string, route: string): Counted {
    let byMethod = this.#byRoute.get(route)
    if (!byMethod) this.#byRoute.set(route, (byMethod = new Map()))
    let counted = byMethod.get(method)
    if (!counted) {
      counted = { method, route, byStatus: new Map(), durations: new Histogram(SHORT) }
      byMethod.set(method, counted)
    }
    return counted
  }
}

/** Functions choose the status of their webhooks: unassigned numbers count by their class, such as `2xx`. */
const labelOf = (status: number): string =>
  status in STATUS_CODES ? String(status) : `${Math.floor(status / 100)}xx`
