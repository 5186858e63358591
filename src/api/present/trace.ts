import type { Static } from 'typebox'
import type { Trace, TraceNode } from '../../commands/runs/traceOf.ts'
import { senderOf } from '../../projections/events.ts'
import type { RunTrace, TraceNode as Node } from '../schemas.ts'

/** Returns a trace without the values of its events and runs. */
export const presentTrace = (run_id: string, { root, nodes }: Trace): Static<typeof RunTrace> => ({
  run_id,
  nodes,
  cut: isCut(root),
  root: presentNode(root),
})

const isCut = (node: TraceNode): boolean => node.isCut || node.children.some(isCut)

const presentNode = ({ what, children, isCut: cut }: TraceNode): Static<typeof Node> => ({
  ...('run_id' in what
    ? {
        kind: 'run' as const,
        run: {
          run_id: what.run_id,
          stream_id: what.stream_id,
          fn: what.fn,
          project_id: what.project_id,
          project_name: what.project_name,
          run_type: what.run_type,
          status: what.status,
          attempt: what.attempt,
          retried_by: what.retried_by,
          replay_of: what.replay_of,
          requested_at: what.requested_at,
          start_time: what.start_time,
          stop_time: what.stop_time,
          error: what.error ? { code: what.error.code, message: what.error.message } : null,
        },
      }
    : {
        kind: 'event' as const,
        event: {
          event_id: what.event_id,
          stream_id: what.stream_id,
          event_type: what.event_type,
          event_time: what.event_time,
          sent_by_run_id: senderOf(what),
        },
      }),
  cut,
  children: children.map(presentNode),
})
