import { useSignal } from '@preact/signals'
import type { Event } from '../../client/index.ts'
import { api } from '../frame/api.ts'
import { useRefresh } from '../frame/live.ts'
import { useLoaded } from '../frame/load.ts'
import { linkTo, navigate } from '../frame/router.ts'
import { may } from '../frame/session.ts'
import { TextField } from '../parts/fields.tsx'
import { List } from '../parts/list.tsx'
import type { Column } from '../parts/table.tsx'
import { Empty, Time } from '../parts/texts.tsx'

/** The newest events, whose streams are listed. */
const EVENTS = 100

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Opens a stream by its id, or one of the newest. */
export const Streams = () => (
  <>
    <div class="heading">
      <h1>Stream</h1>
    </div>
    <OpenStream />
    {may('event', 'read') && <Newest />}
  </>
)

const OpenStream = () => {
  const failure = useSignal('')
  const id = useSignal('')
  const open = (event: SubmitEvent): void => {
    event.preventDefault()
    const value = id.value.trim()
    if (UUID.test(value)) navigate(linkTo(`/streams/${value}`))
    else
      failure.value = `Stream: expected the id of a stream, such as 0199a6f2-7c1e-7000-8000-000000000000, got ${value || 'nothing'}`
  }
  return (
    <form class="filters" aria-label="Open a stream" onSubmit={open}>
      <TextField
        label="Id of the stream"
        size={38}
        value={id.value}
        error={failure.value}
        onChange={(value) => (id.value = value)}
      />
      <button type="submit">Follow</button>
    </form>
  )
}

interface Row {
  readonly newest: Event
  readonly count: number
}

const Newest = () => {
  const events = useLoaded((signal) => api.events.list({ limit: EVENTS, signal }), [])
  useRefresh(['event:created'], events.reload)
  const rows = byStream(events.data?.data ?? [])
  return (
    <section aria-labelledby="newest">
      <h2 id="newest">Newest streams</h2>
      <List
        of={{ ...events, data: events.data && { data: rows } }}
        caption="Streams with the newest events"
        columns={COLUMNS}
        idOf={({ newest }) => newest.stream_id}
        empty={
          <Empty command={`npx svc send hello:said '{"name":"Ada"}'`}>
            No event has been published yet. Each begins a stream:
          </Empty>
        }
      />
      {events.data?.pagination.has_more && <p class="hint">From the newest {EVENTS} events.</p>}
    </section>
  )
}

/** The events are the newest first. */
const byStream = (events: readonly Event[]): Row[] => {
  const rows = new Map<string, Row>()
  for (const event of events) {
    const row = rows.get(event.stream_id)
    rows.set(event.stream_id, { newest: row?.newest ?? event, count: (row?.count ?? 0) + 1 })
  }
  return [...rows.values()]
}

const COLUMNS: readonly Column<Row>[] = [
  {
    name: 'Stream',
    cell: ({ newest: { stream_id } }) => (
      <a href={linkTo(`/streams/${stream_id}`)}>
        <code>{stream_id}</code>
      </a>
    ),
  },
  { name: 'Newest event', cell: ({ newest }) => newest.event_type },
  { name: 'Published', cell: ({ newest }) => <Time at={newest.event_time} /> },
  { name: `In the newest ${EVENTS}`, isNumber: true, cell: ({ count }) => count },
]
