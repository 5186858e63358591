/** One line of a metric in the text format of Prometheus. */
export interface Series {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface Scraped {
  /** The kinds of the metrics, by name. */
  readonly kinds: ReadonlyMap<string, string>
  readonly series: readonly Series[]
  /** The sum of all series of a name that have these labels. */
  sum(name: string, labels?: Readonly<Record<string, string>>): number
}

/** Parses the text format of Prometheus. Throws on a line that is not in it. */
export const parseExposition = (text: string): Scraped => {
  const kinds = new Map<string, string>()
  const series: Series[] = []
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('# HELP ')) continue
    const [, declared, kind] = /^# TYPE (\S+) (counter|gauge|histogram|summary)$/.exec(line) ?? []
    if (declared !== undefined && kind !== undefined) {
      kinds.set(declared, kind)
      continue
    }
    const [, name, labels = '', value] = /^([a-z_][a-z0-9_]*)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
    if (name === undefined || value === undefined) throw new Error(`Expected a line of a metric, got ${line}`)
    const pairs = [...labels.matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"/g)]
    series.push({
      name,
      labels: Object.fromEntries(pairs.map(([, label = '', text = '']) => [label, text])),
      value: Number(value.replace('Inf', 'Infinity')),
    })
  }
  return {
    kinds,
    series,
    sum: (name, labels = {}) =>
      series
        .filter((each) => each.name === name)
        .filter((each) => Object.entries(labels).every(([label, text]) => each.labels[label] === text))
        .reduce((sum, { value }) => sum + value, 0),
  }
}
