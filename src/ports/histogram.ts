/** Upper bounds of the buckets of short durations, such as commits and requests: 0.5 ms to 10 s. Seconds. */
export const SHORT: readonly number[] = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
]

/** The same for runs, which may take minutes: 2.5 ms to 10 minutes. Seconds. */
export const LONG: readonly number[] = [
  0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600,
]

/** Counts values by size. Plain numbers, because every run and every commit is counted: a value takes about 20 ns. */
export class Histogram {
  readonly bounds: readonly number[]
  /** The number of values up to each bound and above the one before it; the last one is that of all greater values. */
  readonly counts: number[]
  sum = 0

  constructor(bounds: readonly number[]) {
    this.bounds = bounds
    this.counts = [...bounds.map(() => 0), 0]
  }

  observe(value: number): void {
    const { bounds, counts } = this
    let at = 0
    while (at < bounds.length && value > (bounds[at] ?? 0)) at++
    counts[at] = (counts[at] ?? 0) + 1
    this.sum += value
  }

  get count(): number {
    return this.counts.reduce((sum, count) => sum + count, 0)
  }
}
