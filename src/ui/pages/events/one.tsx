import type { Event, Run } from '../../../client/index.ts'
import { api, isGone } from '../../frame/api.ts'
import { useRefresh } from '../../frame/live.ts'
import { useLoaded } from '../../frame/load.ts'
import { linkTo } from '../../frame/router.ts'
import { may } from '../../frame/session.ts'
import { Facts } from '../../parts/facts.tsx'
import { Json } from '../../parts/json.tsx'
import { List } from '../../parts/list.tsx'
import type { Column } from '../../parts/table.tsx'
import { Shown } from '../../parts/shown.tsx'
import { Empty, Status, Time, Name } from '../../parts/texts.tsx'

/** One event with its data and the runs that it started. */
export const One = ({ event_id }: { readonly event_id: string }) => {
  const event = useLoaded((signal) => api.events.get(event_id, { signal }), [event_id])
  return (
    <>
      <p>
        <a href={linkTo('/events')}>All events</a>
      </p>
      {isGone(event.error) ? (
        <Empty>
          There is no event <code>{event_id}</code> in this environment.
        </Empty>
      ) : (
        <Shown of={event}>{(data) => <Details event={data} />}</Shown>
      )}
    </>
  )
}

const Details = ({ event }: { readonly event: Event }) => (
  <>
    <h2>{event.event_type}</h2>
    <Facts
      of={{
        Event: <code>{event.event_id}</code>,
        Published: <Time at={event.event_time} />,
        Stream: <a href={linkTo(`/streams/${event.stream_id}`)}>{event.stream_id}</a>,
        'Sent by run': event.sent_by_run_id && (
          <a href={linkTo(`/runs/${event.sent_by_run_id}`)}>{event.sent_by_run_id}</a>
        ),
      }}
    />
    <Json value={event.event_data} name="Data of the event" />
    {may('run', 'read') && <Runs event_id={event.event_id} />}
  </>
)

/** The runs that the page lists, at most. */
const MOST = 100

const Runs = ({ event_id }: { readonly event_id: string }) => {
  const runs = useLoaded((signal) => api.events.runs(event_id, { limit: MOST, signal }), [event_id])
  useRefresh(['run:', 'event:handled'], runs.reload)
  return (
    <section aria-labelledby="runs">
      <h2 id="runs">Runs</h2>
      <List
        of={{ ...runs, data: runs.data && { data: runs.data.data } }}
        caption="Runs that the event started, the newest first"
        columns={COLUMNS}
        idOf={({ run_id }) => run_id}
        empty={<p class="hint">It started no run.</p>}
      />
      {runs.data?.pagination.has_more && (
        <p class="hint">
          The newest {MOST} are listed.{' '}
          <a href={linkTo('/runs', { event: event_id })}>All runs of the event</a>
        </p>
      )}
    </section>
  )
}

const COLUMNS: readonly Column<Run>[] = [
  {
    name: 'Function',
    cell: ({ fn, run_id }) => (
      <a href={linkTo(`/runs/${run_id}`)}>
        <Name of={fn ?? 'Evaluated code'} />
      </a>
    ),
  },
  { name: 'Status', cell: ({ status }) => <Status status={status} /> },
  { name: 'Attempt', isNumber: true, cell: ({ attempt }) => attempt },
  { name: 'Started', cell: ({ start_time }) => <Time at={start_time} /> },
]
