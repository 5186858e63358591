import type { Histogram } from './histogram.ts'

export type Labels = Readonly<Record<string, string>>

/** A number of one metric. */
export interface Sample {
  readonly value: number
  readonly labels?: Labels
}

/** The values of one metric, by size. */
export interface Distribution {
  readonly histogram: Histogram
  readonly labels?: Labels
}

/**
 * A metric of this node. The mechanisms count in plain numbers, and `read` is called when a client asks for the metrics. It
 * returns nothing for what this node does not do.
 */
export type Metric = {
  readonly name: string
  readonly help: string
  /** The names of its labels. Their values are bounded: no id, path or text of a tenant is one. */
  readonly labels?: readonly string[]
} & (
  | {
      readonly kind: 'counter' | 'gauge'
      readonly read: () => readonly Sample[] | Promise<readonly Sample[]>
    }
  | { readonly kind: 'histogram'; readonly read: () => readonly Distribution[] }
)

/** The metrics of a node as text, in the format of a monitoring system. Adapter: Prometheus. */
export interface Exposition {
  readonly contentType: string
  text(): Promise<string>
}
