import type { Event } from '../../client/index.ts'
import { api } from '../frame/api.ts'
import { useRefresh } from '../frame/live.ts'
import { useLoaded } from '../frame/load.ts'
import { linkTo, param, query } from '../frame/router.ts'
import { Filters, TextFilter } from '../parts/filters.tsx'
import { offsetOf, PAGE } from '../parts/pager.tsx'
import { List } from '../parts/list.tsx'
import type { Column } from '../parts/table.tsx'
import { Empty, shortId, Time, sizeText } from '../parts/texts.tsx'
import { Handlers, useHandlers } from './events/handlers.tsx'
import { One } from './events/one.tsx'
import { Publish } from './events/publish.tsx'

/** The events of the environment and their handlers, or the one of the parameter `event`. */
export const Events = () => {
  const event_id = param('event')
  if (event_id === '') return <AllEvents />
  return (
    <>
      <h1>Events</h1>
      <One key={event_id} event_id={event_id} />
    </>
  )
}

const AllEvents = () => {
  const event_type = param('event_type')
  const events = useLoaded(
    (signal) =>
      api.events.list({ ...(event_type && { event_type }), limit: PAGE, offset: offsetOf(), signal }),
    [query.value.toString()],
  )
  const handlers = useHandlers()
  useRefresh(['event:created'], () => {
    if (offsetOf() === 0) events.reload() // an older page does not change below the reader
  })
  const rows = events.data?.data ?? []
  const types = [...(handlers.data ?? []), ...rows].map((one) => one.event_type)
  return (
    <>
      <div class="heading">
        <h1>Events</h1>
        <Publish
          types={[...new Set(types)].filter((type) => !type.startsWith('svc:')).sort()}
          event_type={event_type}
          onDone={events.reload}
        />
      </div>
      <Filters label="Filter events">
        <TextFilter label="Event type" name="event_type" hint="The whole type" />
      </Filters>
      <List
        of={events}
        caption="Events, the newest first"
        columns={COLUMNS}
        idOf={(event) => event.event_id}
        empty={<NoEvents event_type={event_type} />}
      />
      <Handlers handlers={handlers} />
    </>
  )
}

const NoEvents = ({ event_type }: { readonly event_type: string }) =>
  event_type ? (
    <Empty>
      No event has this type. <a href={linkTo('/events')}>Show all events</a>
    </Empty>
  ) : (
    <Empty command={`npx svc send hello:said '{"name":"Ada"}'`}>
      No event has been published yet. Publish one above, or with the command line:
    </Empty>
  )

const COLUMNS: readonly Column<Event>[] = [
  {
    name: 'Event type',
    cell: ({ event_id, event_type }) => <a href={linkTo('/events', { event: event_id })}>{event_type}</a>,
  },
  {
    name: 'Data',
    cell: ({ event_data, event_data_ref }) => (
      <code class="cut">
        {event_data_ref ? sizeText(event_data_ref.size) : JSON.stringify(event_data).slice(0, 200)}
      </code>
    ),
  },
  { name: 'Published', cell: ({ event_time }) => <Time at={event_time} /> },
  {
    name: 'Sent by run',
    isShort: true,
    cell: ({ sent_by_run_id }) =>
      sent_by_run_id && <a href={linkTo(`/runs/${sent_by_run_id}`)}>{shortId(sent_by_run_id)}</a>,
  },
  {
    name: 'Stream',
    isShort: true,
    cell: ({ stream_id }) => (
      <a href={linkTo(`/streams/${stream_id}`)} title={stream_id}>
        {shortId(stream_id)}
      </a>
    ),
  },
  { name: 'Runs', cell: ({ event_id }) => <a href={linkTo('/runs', { event: event_id })}>Runs</a> },
]
