import { readFileSync } from 'node:fs'
import * as assert from 'uvu/assert'
import { suite } from '../support/suite.ts'

const textOf = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

/** The kinds of the metrics that a node serves: `metrics.test.ts` compares this list with the replies. */
const documented = new Map(
  [...textOf('docs/operations.md').matchAll(/^\| `((?:svc|process|nodejs)_\w+)` \| (\w+) \|/gm)].map(
    ([, name = '', kind = '']) => [name, kind],
  ),
)

/** The series of a metric that a query can name. */
const series = new Set(
  [...documented].flatMap(([name, kind]) =>
    kind === 'histogram' ? ['_bucket', '_sum', '_count'].map((part) => name + part) : [name],
  ),
)

const namedIn = (query: string): string[] => query.match(/\b(?:svc|process|nodejs)_\w+/g) ?? []
const unknownIn = (queries: readonly string[]): string[] =>
  queries.flatMap(namedIn).filter((name) => !series.has(name))

interface Panel {
  readonly title: string
  readonly type: string
  readonly targets?: readonly { readonly expr: string }[]
}

const monitoring = suite('the files for Prometheus and Grafana')

monitoring('read only metrics that exist', () => {
  const { panels } = JSON.parse(textOf('infra/grafana.json')) as { panels: readonly Panel[] }
  const queries = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
  assert.ok(queries.length > 30)
  assert.equal(unknownIn(queries), [])
  for (const { type, title, targets = [] } of panels) assert.is(targets.length > 0, type !== 'row', title)
  const alerts = textOf('infra/alerts.yml')
  assert.ok(namedIn(alerts).length >= 10)
  assert.equal(unknownIn([alerts]), [])
  assert.equal(
    unknownIn([textOf('docs/scaling.md')]).filter((name) => !documented.has(name)), // histograms in prose
    [],
  )
})

monitoring('show every metric of the service', () => {
  const shown = new Set(namedIn(textOf('infra/grafana.json')))
  const own = [...documented.keys()].filter((name) => name.startsWith('svc_'))
  assert.ok(own.length > 25)
  const isShown = (name: string) =>
    shown.has(name) || ['_bucket', '_count'].some((part) => shown.has(name + part))
  assert.equal(
    own.filter((name) => !isShown(name)),
    [],
  )
})

monitoring('find rates of counters only, and quantiles of histograms only', () => {
  const queries = textOf('infra/grafana.json') + textOf('infra/alerts.yml')
  const rated = [...queries.matchAll(/(?:rate|increase)\(((?:svc|process|nodejs)_\w+)/g)]
  assert.ok(rated.length > 10)
  for (const [, name = ''] of rated) {
    const kind = documented.get(name) ?? documented.get(name.replace(/_(?:bucket|sum|count)$/, ''))
    assert.ok(kind === 'counter' || kind === 'histogram', name)
  }
})

monitoring.run()
