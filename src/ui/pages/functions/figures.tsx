import type { RunSeries } from '../../../client/index.ts'
import { api } from '../../frame/api.ts'
import { useRefresh } from '../../frame/live.ts'
import { useLoaded } from '../../frame/load.ts'
import { linkTo } from '../../frame/router.ts'
import { Shown } from '../../parts/shown.tsx'
import { durationText } from '../../parts/durationText.ts'
import { countText } from '../../parts/texts.tsx'

/** The shortest time between two reloads: a page has one for each row of its tables. */
export const REST_MS = 5000

/** The runs of a function in the last 24 hours: their number, failures and duration. */
export const Figures = ({ project, fn }: { readonly project: string; readonly fn: string }) => {
  const stats = useLoaded(
    (signal) =>
      api.request('GET /v1/runs/stats', {
        query: { interval: 'hour', project, fn },
        signal,
      }) as Promise<RunSeries>, // with an interval, it is a series
    [project, fn],
  )
  useRefresh(['run:'], stats.reload, ({ data }) => 'fn' in data && data.fn === fn, REST_MS)
  return (
    <Shown of={stats} isInline loading={<span class="hint">…</span>}>
      {({ total }) => <Total of={total} project={project} fn={fn} />}
    </Shown>
  )
}

interface TotalProps {
  readonly of: RunSeries['total']
  readonly project: string
  readonly fn: string
}

const Total = ({ of: { total_runs, failed, duration_ms }, project, fn }: TotalProps) => {
  if (total_runs === 0) return <span class="hint">No runs</span>
  return (
    <span>
      {countText(total_runs, 'run')},{' '}
      {failed === 0 ? (
        'none failed'
      ) : (
        <a href={linkTo('/runs', { project, fn, status: 'failed', time_range: 'P1D' })}>
          {failed.toLocaleString('en')} failed
        </a>
      )}
      {duration_ms.p95 !== null && (
        <span title="95 percent of the ended runs took no longer">, p95 {durationText(duration_ms.p95)}</span>
      )}
    </span>
  )
}
