import type { Run } from '../../../client/index.ts'
import { api } from '../../frame/api.ts'
import { useRefresh } from '../../frame/live.ts'
import { useLoaded } from '../../frame/load.ts'
import { PERIOD_MS, useRepeat } from '../../frame/repeat.ts'
import { linkTo } from '../../frame/router.ts'
import { List } from '../../parts/list.tsx'
import type { Column } from '../../parts/table.tsx'
import { Time } from '../../parts/texts.tsx'

/** The newest failed runs that are counted. */
const COUNTED = 100

interface Row {
  readonly code: string
  readonly count: number
  readonly newest: Run
}

/** The errors of a period by code, from its newest failed runs. */
export const Errors = ({ time_range }: { readonly time_range: string }) => {
  const failed = useLoaded(
    (signal) => api.runs.list({ status: 'failed', time_range, limit: COUNTED, signal }),
    [time_range],
  )
  useRefresh(['run:fail'], failed.reload)
  useRepeat(failed.reload, PERIOD_MS)
  const rows = byCode(failed.data?.data ?? [])
  const columns: readonly Column<Row>[] = [
    {
      name: 'Code',
      cell: ({ code }) => (
        <a href={linkTo('/runs', { status: 'failed', error_code: code, time_range })}>{code}</a>
      ),
    },
    { name: 'Runs', isNumber: true, cell: ({ count }) => count },
    { name: 'Newest', cell: ({ newest }) => <Time at={newest.stop_time} /> },
    {
      name: 'Message',
      cell: ({ newest }) => (
        <a class="clamped" href={linkTo(`/runs/${newest.run_id}`)}>
          {newest.error?.message}
        </a>
      ),
    },
  ]
  return (
    <section aria-labelledby="errors">
      <h2 id="errors">Errors</h2>
      <List
        of={{ ...failed, data: failed.data && { data: rows } }}
        caption="Errors by code"
        columns={columns}
        idOf={({ code }) => code}
        empty={<p class="hint">No run failed in this period.</p>}
      />
      {failed.data?.pagination.has_more && <p class="hint">From the newest {COUNTED} failed runs.</p>}
    </section>
  )
}

/** The most frequent code first. The runs are the newest first. */
const byCode = (runs: readonly Run[]): Row[] => {
  const rows = new Map<string, Row>()
  for (const run of runs) {
    const code = run.error?.code ?? 'unknown'
    const row = rows.get(code) ?? { code, count: 0, newest: run }
    rows.set(code, { ...row, count: row.count + 1 })
  }
  return [...rows.values()].sort((a, b) => b.count - a.count)
}
