import * as assert from 'uvu/assert'
import { openExposition } from '../../src/adapters/prometheus/exposition.ts'
import { Histogram } from '../../src/ports/histogram.ts'
import type { Metric } from '../../src/ports/metrics.ts'
import { parseExposition } from '../support/exposition.ts'
import { suite } from '../support/suite.ts'

const exposition = suite('the text of Prometheus')

const scraped = async (...metrics: readonly Metric[]) => parseExposition(await openExposition(metrics).text())

exposition('has the buckets of a histogram, each with the values of those before it', async () => {
  const histogram = new Histogram([0.1, 1])
  for (const value of [0.05, 0.5, 0.6, 7]) histogram.observe(value)
  const { series, kinds } = await scraped({
    kind: 'histogram',
    name: 'x_seconds',
    help: 'x',
    labels: ['of'],
    read: () => [{ labels: { of: 'a' }, histogram }],
  })
  assert.is(kinds.get('x_seconds'), 'histogram')
  assert.equal(
    series
      .filter(({ name }) => name.startsWith('x_'))
      .map(({ name, labels, value }) => [name, labels, value]),
    [
      ['x_seconds_bucket', { of: 'a', le: '0.1' }, 1],
      ['x_seconds_bucket', { of: 'a', le: '1' }, 3],
      ['x_seconds_bucket', { of: 'a', le: '+Inf' }, 4],
      ['x_seconds_sum', { of: 'a' }, 8.15],
      ['x_seconds_count', { of: 'a' }, 4],
    ],
  )
})

exposition('has the values at the moment of the request, and not their sum with earlier ones', async () => {
  let value = 0
  const read = () => [{ value }]
  const readOf = () => [{ value, labels: { of: `${value}` } }]
  const exposed = openExposition([
    { kind: 'counter', name: 'x_total', help: 'x', read },
    { kind: 'counter', name: 'y_total', help: 'y', labels: ['of'], read: readOf },
  ])
  for (value of [3, 5, 5]) {
    const { sum } = parseExposition(await exposed.text())
    assert.equal([sum('x_total'), sum('y_total')], [value, value])
  }
})

exposition('describes a metric that this node does not have, without a value', async () => {
  const none = { help: 'x', read: () => [] }
  const { kinds, series } = await scraped(
    { kind: 'gauge', name: 'g', ...none },
    { kind: 'counter', name: 'c_total', ...none },
    { kind: 'histogram', name: 'h_seconds', ...none },
  )
  for (const name of ['g', 'c_total', 'h_seconds']) assert.ok(kinds.has(name), name)
  assert.equal(
    series.filter(({ name }) => /^(?:g|c_|h_)/.test(name)),
    [],
  )
})

exposition('contains labels with quotes and line breaks as one line', async () => {
  const read = () => [{ labels: { text: 'a "b"\nc\\d' }, value: 1 }]
  const { series } = await scraped({ kind: 'gauge', name: 'g', help: 'x', labels: ['text'], read })
  assert.is(series.find(({ name }) => name === 'g')?.labels['text'], 'a \\"b\\"\\nc\\\\d')
})

exposition.run()
