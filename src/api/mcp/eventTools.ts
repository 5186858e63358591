import Type from 'typebox'
import { eventRoutes, PublishBody } from '../routes/events.ts'
import { argumentsOf } from './runTools.ts'
import { type ApiTool, apiTool, routeIn, use } from './tool.ts'

const listEvents = routeIn(eventRoutes, 'listEvents')
const { event_type, event_data, stream_id } = PublishBody.properties

export const eventTools: readonly ApiTool[] = [
  apiTool({
    name: 'search_events',
    title: 'Search events',
    description:
      'Lists published events with their data, the newest first; with `event_type`, those of one type.',
    needs: [{ type: 'event', action: 'read' }],
    readOnly: true,
    input: argumentsOf(listEvents),
    call: (ask, query) => use(listEvents, ask, { query }),
  }),
  apiTool({
    name: 'send_event',
    title: 'Send an event',
    description:
      'Publishes an event. Each function that handles its type runs once; `handlers` in the reply is their number.',
    needs: [{ type: 'event', action: 'create', somewhere: true }],
    readOnly: false,
    input: Type.Object({ event_type, event_data, stream_id }),
    call: (ask, body) => use(routeIn(eventRoutes, 'publishEvent'), ask, { body }),
  }),
]
