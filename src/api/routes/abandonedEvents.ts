import { replayEvent, replayIdOf } from '../../commands/events/replayEvent.ts'
import type { EventDoc } from '../../projections/events.ts'
import type { Views } from '../../projections/views.ts'
import { listOf, PageQuery } from '../paging.ts'
import { item, operatorRoute } from '../route.ts'
import { AbandonedEvent, Event } from '../schemas.ts'

const tag = 'Operator'

const presentAbandoned = async (doc: EventDoc, { events }: Views) => {
  const { event_id, env_id, stream_id, event_type, event_time, error, unread_projects: projects } = doc
  const replay = await events.get(replayIdOf(event_id))
  const replayed_as = replay?.event_id ?? null
  const ids = { event_id, env_id, stream_id }
  return { ...ids, event_type, event_time, error, ...(projects && { projects }), replayed_as }
}

export const abandonedEventRoutes = [
  operatorRoute({
    tag,
    method: 'GET',
    path: '/operator/abandoned-events',
    operationId: 'listAbandonedEvents',
    summary: 'List the events that a defect kept from their handlers',
    description:
      'The log of the worker contains the reason. `replayed_as` is the event that repeats it. With `projects`, only these have not ' +
      'handled the event, because the lists of functions of their builds could not be read.',
    query: PageQuery,
    reply: { kind: 'list', schema: AbandonedEvent },
    handle: ({ query, deps: { views } }) =>
      listOf(views, 'events', { equal: {}, sort: 'abandoned', from: '', descending: true, ...query }, (doc) =>
        presentAbandoned(doc, views),
      ),
  }),

  operatorRoute({
    tag,
    method: 'POST',
    path: '/operator/events/:event_id/replay',
    operationId: 'replayEvent',
    summary: 'Publish an event again',
    description:
      'For an abandoned event, when the cause is removed. Publishes the type and data of the event on the same stream, so ' +
      'its handlers run; for an event with `projects`, those of these projects only. A repetition returns the same event.',
    errors: ['quota_exceeded'],
    reply: { kind: 'item', status: 201, schema: Event },
    handle: async ({ deps, params: { event_id }, operator }) =>
      item({ ...(await replayEvent(deps, { event_id }, operator.cause)), sent_by_run_id: null }, 201),
  }),
]
