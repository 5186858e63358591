import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { allRoles, readConfig } from '../../src/process/config.ts'
import { outputIn } from '../support/example.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

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

monitoring('notice that no node of a role is left, whose address is no target any more', () => {
  const alerts = textOf('infra/alerts.yml')
  for (const role of allRoles) assert.match(alerts, `absent(svc_node_role{job="svc", role="${role}"})`)
})

monitoring('read a token that git ignores, and that the command of the README writes', async () => {
  const [, file = ''] = /credentials_file: ([\w-]+)/.exec(textOf('infra/prometheus.yml')) ?? []
  assert.ok(textOf('infra/.gitignore').split('\n').includes(file))
  assert.match(textOf('infra/compose.metrics.yaml'), `./${file}:/etc/prometheus/${file}:ro`)
  const [command = ''] = new RegExp(`^ *\\(.*> ${file}\\)$`, 'm').exec(textOf('infra/README.md')) ?? []
  const dir = tempDir()
  writeFileSync(join(dir, '.env'), 'SVC_API_KEY=key\nSVC_OPERATOR_TOKEN=the-token\nMONGODB_PASSWORD=p\n')
  await outputIn(dir, 'sh', ['-c', command])
  assert.is(readFileSync(join(dir, file), 'utf8'), 'the-token')
  assert.is(statSync(join(dir, file)).mode & 0o777, 0o600)
})

monitoring.run()

const example = suite('.env.example')

example('names the least length of the operator token that the service accepts', () => {
  const [, least = ''] =
    /^# At least (\d+) characters\nSVC_OPERATOR_TOKEN=/m.exec(textOf('infra/.env.example')) ?? []
  const tokenOf = (length: number) =>
    readConfig({ SVC_OPERATOR_TOKEN: 'abcdefgh'.repeat(length).slice(0, length) }).operatorToken
  assert.is(tokenOf(Number(least))?.length, Number(least))
  assert.throws(() => tokenOf(Number(least) - 1))
})

example.run()
