import type { RunSeries, RunStats } from '../../client/index.ts'
import { api } from '../frame/api.ts'
import { useRefresh } from '../frame/live.ts'
import { useLoaded } from '../frame/load.ts'
import { PERIOD_MS, useRepeat, useReturn } from '../frame/repeat.ts'
import { linkTo, param, setQuery } from '../frame/router.ts'
import { may } from '../frame/session.ts'
import { Choice } from '../parts/fields.tsx'
import { Shown } from '../parts/shown.tsx'
import { Empty } from '../parts/texts.tsx'
import { Errors } from './overview/errors.tsx'
import { Quota } from './overview/quota.tsx'
import { RunCharts } from './overview/runCharts.tsx'
import { Warnings } from './overview/warnings.tsx'

/** The periods by their value in the URL. */
const RANGES = {
  hour: { text: 'Last hour', interval: 'minute', time_range: 'PT1H' },
  day: { text: 'Last day', interval: 'hour', time_range: 'P1D' },
  month: { text: 'Last 30 days', interval: 'day', time_range: 'P30D' },
} as const

/** The shortest time between two reloads: each is several requests, and the organization has one rate for all of them. */
const REST_MS = 5000

const rangeOf = (value: string) =>
  Object.hasOwn(RANGES, value) ? RANGES[value as keyof typeof RANGES] : RANGES.hour

/** The state of the environment: its runs over time, their errors, the quota, and what needs attention. */
export const Overview = () => {
  const range = rangeOf(param('range'))
  const series = useLoaded(
    async (signal) =>
      (await api.request('GET /v1/runs/stats', { query: { interval: range.interval }, signal })) as RunSeries,
    [range.interval],
  )
  const usage = useLoaded(
    async (signal) => (may('env', 'read') ? api.request('GET /v1/org/usage', { signal }) : undefined),
    [],
  )
  const reload = (): void => {
    series.reload()
    usage.reload()
  }
  useRefresh(['run:'], reload, undefined, REST_MS)
  useRepeat(reload, PERIOD_MS)
  useReturn(reload)
  return (
    <>
      <div class="heading">
        <h1>Overview</h1>
        <Choice
          label="Period"
          isInline
          value={param('range') || 'hour'}
          options={Object.entries(RANGES).map(([value, { text }]) => [value, text] as const)}
          onChange={(value) => setQuery({ range: value === 'hour' ? '' : value })}
        />
      </div>
      <Warnings usage={usage.data} />
      <Counts />
      <Shown of={series}>{(data) => <RunCharts series={data} />}</Shown>
      <Errors time_range={range.time_range} />
      <Shown of={usage} loading={null}>
        {(data) => data && <Quota usage={data} />}
      </Shown>
    </>
  )
}

/** The stored runs by their present status, as links to them. */
const Counts = () => {
  const counts = useLoaded(
    (signal) =>
      Promise.all([api.runs.stats({ signal }), api.runs.list({ status: 'pending_retry', limit: 1, signal })]),
    [],
  )
  useRefresh(['run:'], counts.reload, undefined, REST_MS)
  return (
    <Shown of={counts} loading={null}>
      {([stats, waiting]) => <CountsOf stats={stats} waiting={waiting.pagination.total} />}
    </Shown>
  )
}

interface CountsProps {
  readonly stats: RunStats
  /** The runs that wait for a retry. */
  readonly waiting: number
}

const CountsOf = ({ stats, waiting }: CountsProps) => {
  const { total_runs, running, succeeded, failed, cancelled } = stats
  if (total_runs === 0)
    return (
      <Empty command="npx svc run handlers/hello '{}'">No function has run yet. Call one of yours:</Empty>
    )
  return (
    <dl class="facts" aria-label="Runs now">
      <Count name="All runs" count={total_runs} status="" />
      <Count name="Running now" count={running} status="running" />
      <Count name="Waiting for a retry" count={waiting} status="pending_retry" />
      <Count name="Succeeded" count={succeeded} status="succeeded" />
      <Count name="Failed" count={failed} status="failed" />
      <Count name="Cancelled" count={cancelled} status="cancelled" />
    </dl>
  )
}

const Count = ({
  name,
  count,
  status,
}: {
  readonly name: string
  readonly count: number
  readonly status: string
}) => (
  <div>
    <dt>{name}</dt>
    <dd>
      <a class="count" href={linkTo('/runs', { status })}>
        {count.toLocaleString('en')}
      </a>
    </dd>
  </div>
)
