import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import type { RunSeries } from '../../../client/index.ts'
import { type Column, Table } from '../../parts/table.tsx'
import { durationText } from '../../parts/durationText.ts'
import { Chart, type Line } from './chart.tsx'

type Point = RunSeries['points'][number]

/** The outcomes from the bottom of a bar to its top. */
const OUTCOMES = [
  { name: 'Succeeded', field: 'succeeded', color: '--good' },
  { name: 'Failed', field: 'failed', color: '--bad' },
  { name: 'Cancelled', field: 'cancelled', color: '--still' },
  { name: 'Waits for retry', field: 'pending_retry', color: '--warn' },
  { name: 'Running', field: 'running', color: '--accent' },
] as const

const PERCENTILES = [
  { name: 'p50', field: 'p50', color: '--good' },
  { name: 'p95', field: 'p95', color: '--accent', stroke: 'dashed' },
  { name: 'p99', field: 'p99', color: '--warn', stroke: 'dotted' },
] as const

/** The runs over time by outcome, and their durations. Each picture is also a table. */
export const RunCharts = ({ series }: { readonly series: RunSeries }) => {
  const { interval, points } = series
  const times = points.map(({ time }) => Date.parse(time) / 1000)
  const shared = { times, isUtc: interval === 'day' }
  const outcomes = OUTCOMES.map(({ field, ...line }): Line => ({
    ...line,
    values: points.map((point) => point[field]),
  }))
  const durations = PERCENTILES.map(({ field, ...line }): Line => ({
    ...line,
    values: points.map(({ duration_ms }) => duration_ms[field]),
  }))
  return (
    <div class="charts">
      <section aria-labelledby="outcomes">
        <h2 id="outcomes">Runs per {interval}</h2>
        <Chart
          {...shared}
          label={`Runs per ${interval} by outcome`}
          lines={outcomes}
          isStacked
          textOfValue={(count) => count.toLocaleString('en')}
        />
        <AsTable>
          <Table
            caption={`Runs per ${interval} by outcome`}
            columns={OUTCOME_COLUMNS}
            rows={points.toReversed()}
            idOf={({ time }) => time}
          />
        </AsTable>
      </section>
      <section aria-labelledby="durations">
        <h2 id="durations">Duration</h2>
        <Chart
          {...shared}
          label={`Duration of the runs per ${interval}`}
          lines={durations}
          textOfValue={durationText}
        />
        <AsTable>
          <Table
            caption={`Duration of the runs per ${interval}`}
            columns={DURATION_COLUMNS}
            rows={points.toReversed()}
            idOf={({ time }) => time}
          />
        </AsTable>
      </section>
    </div>
  )
}

const TIME: Column<Point> = { name: 'Time (UTC)', cell: ({ time }) => time.slice(0, 16).replace('T', ' ') }

const OUTCOME_COLUMNS: readonly Column<Point>[] = [
  TIME,
  ...OUTCOMES.map(({ name, field }) => ({ name, isNumber: true, cell: (point: Point) => point[field] })),
]

const DURATION_COLUMNS: readonly Column<Point>[] = [
  TIME,
  { name: 'Ended', isNumber: true, cell: ({ duration_ms }) => duration_ms.count },
  ...PERCENTILES.map(({ name, field }) => ({
    name,
    isNumber: true,
    cell: ({ duration_ms: { [field]: ms } }: Point) => (ms === null ? '–' : durationText(ms)),
  })),
]

/** The rows exist only while they are shown, so that `j` and `k` find those of the page. */
const AsTable = ({ children }: { readonly children: ComponentChildren }) => {
  const isOpen = useSignal(false)
  return (
    <details onToggle={({ currentTarget }) => (isOpen.value = currentTarget.open)}>
      <summary>As a table</summary>
      {isOpen.value && children}
    </details>
  )
}
