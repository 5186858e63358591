import { useSignal } from '@preact/signals'
import type { Run } from '../../../client/index.ts'
import { linkTo, setQuery } from '../../frame/router.ts'
import { Json } from '../../parts/json.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { shortId } from '../../parts/texts.tsx'
import type { KeptEvent, Tail } from './tail.ts'

/** The rows that are shown at first, and further ones on demand. */
const ROWS = 100

/** The events of a stream with their positions, the newest first. */
export const EventList = ({ tail: { events, count } }: { readonly tail: Tail }) => {
  const limit = useSignal(ROWS)
  const names = new Map(events.flatMap(({ event: { data } }) => ('run' in data ? [nameOf(data.run)] : [])))
  return (
    <>
      <Table
        caption="Events of the stream, the newest first"
        columns={columnsOf(names)}
        rows={events.slice(-limit.value).toReversed()}
        idOf={({ event }) => event.id}
      />
      <div class="pager">
        {events.length > limit.value && (
          <button type="button" onClick={() => (limit.value += ROWS)}>
            Show {ROWS} more
          </button>
        )}
        {count > events.length && (
          <span class="hint">
            The page keeps the newest {events.length.toLocaleString('en')} of {count.toLocaleString('en')}{' '}
            events.
          </span>
        )}
      </div>
    </>
  )
}

/** Emitted data has the id of its run only. */
const nameOf = ({ run_id, fn }: Run) => [run_id, fn] as const

const columnsOf = (names: ReadonlyMap<string, string | null>): readonly Column<KeptEvent>[] => [
  {
    name: 'Position',
    cell: ({ event: { id } }) => (
      <button
        type="button"
        class="plain small"
        title="Follows the stream from here on"
        onClick={() => setQuery({ from: id })}
      >
        {id}
      </button>
    ),
  },
  { name: 'Event', cell: ({ event }) => event.event },
  {
    name: 'Run',
    cell: ({ event }) => {
      if (event.event === 'stream:expired') return null
      const run_id = event.event === 'stream:data' ? event.data.run_id : event.data.run.run_id
      return (
        <a href={linkTo(`/runs/${run_id}`)} title={run_id}>
          {names.get(run_id) ?? shortId(run_id)}
        </a>
      )
    },
  },
  {
    name: 'Content',
    cell: (kept) => <Content of={kept} />,
  },
]

/** The data is converted to text only while it is open: it can have megabytes. */
const Content = ({ of: { event, summary } }: { readonly of: KeptEvent }) => {
  const isOpen = useSignal(false)
  return (
    <details onToggle={({ currentTarget }) => (isOpen.value = currentTarget.open)}>
      <summary class="cut">{summary}</summary>
      {isOpen.value && <Json value={event.data} name={`event-${event.id}`} />}
    </details>
  )
}
