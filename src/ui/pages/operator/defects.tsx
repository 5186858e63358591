import type { Page } from '../../../client/index.ts'
import { ask } from '../../frame/api.ts'
import { useLoaded } from '../../frame/load.ts'
import { Action } from '../../parts/action.tsx'
import { offsetOf, PAGE } from '../../parts/pager.tsx'
import { List } from '../../parts/list.tsx'
import type { Column } from '../../parts/table.tsx'
import { Empty, Time } from '../../parts/texts.tsx'

interface Abandoned {
  readonly event_id: string
  readonly env_id: string
  readonly event_type: string
  readonly event_time: string
  readonly error: { readonly code: string; readonly message: string }
  readonly replayed_as: string | null
}

interface Skipped {
  readonly read_model: string
  readonly type: string
  readonly id: string
  readonly stream: string
  readonly revision: number
  readonly error: string
  readonly skipped_at: string
}

/** What defects of the service kept from users: events without runs, facts that read models lack. */
export const Defects = () => (
  <>
    <AbandonedEvents />
    <SkippedFacts />
  </>
)

const EVENTS_OFFSET = 'events_offset'
const FACTS_OFFSET = 'facts_offset'

const AbandonedEvents = () => {
  const offset = offsetOf(EVENTS_OFFSET)
  const events = useLoaded(
    (signal) =>
      ask<Page<Abandoned>>('GET /operator/abandoned-events', { query: { limit: PAGE, offset }, signal }),
    [offset],
  )
  const columns: readonly Column<Abandoned>[] = [
    { name: 'Event', cell: ({ event_id }) => <code>{event_id}</code> },
    { name: 'Type', cell: ({ event_type }) => event_type },
    { name: 'Environment', cell: ({ env_id }) => <code>{env_id}</code> },
    { name: 'Time', cell: ({ event_time }) => <Time at={event_time} /> },
    { name: 'Error', cell: ({ error: { code, message } }) => `${code}: ${message}` },
    { name: 'Replayed as', cell: ({ replayed_as }) => replayed_as && <code>{replayed_as}</code> },
    {
      name: 'Actions',
      cell: ({ event_id, event_type, replayed_as }) => (
        <Action
          label="Replay"
          does={`Publishes ${event_type} again with its data on its stream, so that its handlers run. Do this when the cause is removed.`}
          asks
          refusal={replayed_as ? 'It was replayed' : undefined}
          run={async (idempotencyKey) => {
            await ask('POST /operator/events/{event_id}/replay', { path: { event_id }, idempotencyKey })
            events.reload()
            return `Published ${event_type} again.`
          }}
        />
      ),
    },
  ]
  return (
    <section aria-labelledby="abandoned">
      <h2 id="abandoned">Abandoned events</h2>
      <p class="hint">A defect kept them from their handlers. The log of the worker has the reason.</p>
      <List
        of={events}
        offset={EVENTS_OFFSET}
        caption="Abandoned events"
        columns={columns}
        idOf={({ event_id }) => event_id}
        empty={<Empty>No event was abandoned.</Empty>}
      />
    </section>
  )
}

const FACTS: readonly Column<Skipped>[] = [
  { name: 'Read model', cell: ({ read_model }) => read_model },
  { name: 'Fact', cell: ({ type }) => type },
  {
    name: 'Place',
    cell: ({ stream, revision }) => (
      <code>
        {stream}@{revision}
      </code>
    ),
  },
  { name: 'Error', cell: ({ error }) => error },
  { name: 'Skipped', cell: ({ skipped_at }) => <Time at={skipped_at} /> },
]

const SkippedFacts = () => {
  const offset = offsetOf(FACTS_OFFSET)
  const facts = useLoaded(
    (signal) => ask<Page<Skipped>>('GET /operator/skipped-facts', { query: { limit: PAGE, offset }, signal }),
    [offset],
  )
  return (
    <section aria-labelledby="skipped">
      <h2 id="skipped">Skipped facts</h2>
      <p class="hint">
        Read models lack them, because of a defect. A version without the defect rebuilds the read model.
      </p>
      <List
        of={facts}
        offset={FACTS_OFFSET}
        caption="Skipped facts, the newest first"
        columns={FACTS}
        idOf={({ read_model, id }) => read_model + id}
        empty={<Empty>No fact was skipped.</Empty>}
      />
    </section>
  )
}
