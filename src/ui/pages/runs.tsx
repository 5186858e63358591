import { useSignal } from '@preact/signals'
import type { Pagination, Run } from '../../client/index.ts'
import { api } from '../frame/api.ts'
import { useRefresh } from '../frame/live.ts'
import { useLoaded } from '../frame/load.ts'
import { continues, linkTo, param, query, setQuery } from '../frame/router.ts'
import { Button } from '../parts/button.tsx'
import { List } from '../parts/list.tsx'
import type { Column } from '../parts/table.tsx'
import { durationText } from '../parts/durationText.ts'
import { Empty, shortId, Status, Time, Name } from '../parts/texts.tsx'
import { BulkActions } from './runs/bulkActions.tsx'
import { FilterBar, runFilters, Scopes } from './runs/filterBar.tsx'

const PAGE = 50

/** The runs of the environment. The URL has the filters and the position in the list. */
export const Runs = () => {
  const cursor = param('cursor')
  const asked = { ...runFilters(), ...(cursor && { before: cursor }) }
  const page = useLoaded(
    (signal) => api.runs.list({ ...asked, limit: PAGE, signal }),
    [query.value.toString()],
  )
  useRefresh(['run:', 'event:handled'], () => {
    if (cursor === '') page.reload() // an older page does not change below the reader
  })
  const picked = useSignal<ReadonlyMap<string, Run>>(new Map())
  const rows = page.data?.data ?? []

  const select = (ids: ReadonlySet<string>): void => {
    const known = new Map([...picked.value, ...rows.map((run) => [run.run_id, run] as const)])
    picked.value = new Map([...ids].flatMap((id) => [[id, known.get(id)] as const]).filter(isKnown))
  }

  return (
    <>
      <div class="heading">
        <h1>Runs</h1>
        {page.data && <Total pagination={page.data.pagination} place={placeOf(cursor)} />}
      </div>
      <FilterBar />
      <Scopes />
      <BulkActions
        picked={picked.value}
        asked={asked}
        matching={page.data?.pagination}
        place={placeOf(cursor)}
        onPick={(runs) => (picked.value = new Map(runs.map((run) => [run.run_id, run])))}
        onDone={(runs) => {
          const done = new Set(runs.map(({ run_id }) => run_id))
          picked.value = new Map([...picked.value].filter(([run_id]) => !done.has(run_id)))
          page.reload()
        }}
      />
      <List
        of={{ ...page, data: page.data && { data: rows } }}
        caption="Runs, the newest first"
        columns={COLUMNS}
        idOf={(run) => run.run_id}
        selected={new Set(picked.value.keys())}
        onSelect={select}
        empty={<NoRuns isFiltered={query.value.size > 0} />}
      />
      <CursorPager next={page.data?.pagination.next ?? page.data?.pagination.searched_to} />
    </>
  )
}

const isKnown = (entry: readonly [string, Run | undefined]): entry is readonly [string, Run] =>
  entry[1] !== undefined

/** The characters of an error in the list. */
const SHOWN = 200

const COLUMNS: readonly Column<Run>[] = [
  {
    name: 'Function',
    cell: (run) => (
      <>
        <a href={linkTo(`/runs/${run.run_id}`)} title={run.run_id}>
          <Name of={run.fn ?? 'Evaluated code'} />
        </a>
        {run.error && (
          <span class="clamped hint">{`${run.error.code}: ${run.error.message}`.slice(0, SHOWN)}</span>
        )}
      </>
    ),
  },
  { name: 'Status', cell: (run) => <Status status={run.status} /> },
  { name: 'Type', isShort: true, cell: (run) => run.run_type },
  { name: 'Project', cell: (run) => run.project_name },
  { name: 'Attempt', isNumber: true, cell: (run) => run.attempt },
  { name: 'Started', cell: (run) => <Time at={run.start_time} /> },
  {
    name: 'Duration',
    isNumber: true,
    cell: ({ start_time, stop_time }) =>
      stop_time ? durationText(Date.parse(stop_time) - Date.parse(start_time)) : '…',
  },
  { name: 'Run', isShort: true, cell: (run) => <code title={run.run_id}>{shortId(run.run_id)}</code> },
]

/** The runs that a page counts: those of the list, or the rest of it. */
const placeOf = (cursor: string): string => (cursor === '' ? 'in the list' : 'from here on')

const Total = ({
  pagination: { total, searched_to },
  place,
}: {
  readonly pagination: Pagination
  readonly place: string
}) => (
  <span class="hint" aria-live="polite">
    {searched_to === undefined
      ? `${total.toLocaleString('en')} ${place}`
      : `${total.toLocaleString('en')} found so far`}
  </span>
)

const NoRuns = ({ isFiltered }: { readonly isFiltered: boolean }) =>
  isFiltered ? (
    <Empty>
      No run matches these filters. <a href={linkTo('/runs')}>Show all runs</a>
    </Empty>
  ) : (
    <Empty command="npx svc run handlers/hello '{}'">No function has run yet. Call one of yours:</Empty>
  )

/** Pages by the last run of the page, so that new runs move nothing and the millionth page costs no more than the first. */
const CursorPager = ({ next }: { readonly next: string | undefined }) => {
  const cursor = param('cursor')
  if (cursor === '' && next === undefined) return null
  return (
    <div class="pager" role="group" aria-label="Pages of the list">
      <Button isOff={cursor === ''} onClick={() => setQuery({ cursor: '' })}>
        Newest
      </Button>
      <Button isOff={cursor === '' || !continues()} onClick={() => history.back()}>
        Newer
      </Button>
      <Button isOff={next === undefined} onClick={() => setQuery({ cursor: next ?? '' }, { isNext: true })}>
        Older
      </Button>
    </div>
  )
}
