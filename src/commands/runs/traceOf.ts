import { childrenOf, type RunDoc } from '../../projections/runs.ts'
import { type EventDoc, sentBy } from '../../projections/events.ts'
import type { CommandDeps } from '../deps.ts'

/** The events and runs in one trace. */
export const MOST_NODES = 100
/** Runs above a run, each the caller of the next one. */
const MOST_CALLERS = 100

type Views = Pick<CommandDeps['views'], 'runs' | 'events'>

/** An event with the runs it started, or a run with the runs it called and the events it sent. */
export interface TraceNode {
  readonly what: EventDoc | RunDoc
  readonly children: TraceNode[]
  /** True: some of its children are left out. */
  isCut: boolean
}

export interface Trace {
  readonly root: TraceNode
  readonly nodes: number
}

const isRun = (what: TraceNode['what']): what is RunDoc => 'run_id' in what

/**
 * The tree that a run is part of. It begins with the event that started the run, or that started the run which called it. The
 * tree is read in breadth, so a large one loses its deepest parts.
 */
export const traceOf = async (views: Views, run: RunDoc): Promise<Trace> => {
  const root: TraceNode = { what: await rootOf(views, run), children: [], isCut: false }
  let nodes = 1
  const queue = [root]
  for (const node of queue) {
    const room = MOST_NODES - nodes
    const found = await childrenIn(views, node.what, room + 1)
    node.isCut = found.length > room
    for (const what of found.slice(0, room)) {
      const child: TraceNode = { what, children: [], isCut: false }
      node.children.push(child)
      queue.push(child)
      nodes++
    }
  }
  return { root, nodes }
}

const rootOf = async ({ runs, events }: Views, run: RunDoc): Promise<TraceNode['what']> => {
  let top = run
  for (let callers = 0; top.parent_run_id !== null && callers < MOST_CALLERS; callers++) {
    const parent = await runs.get(top.parent_run_id)
    if (!parent) break // it is no longer stored
    top = parent
  }
  if (top.event_id !== null) return (await events.get(top.event_id)) ?? top
  const first = top.origin_run_id === null ? null : await runs.get(top.origin_run_id)
  return first ?? top
}

/** At most `limit` children, the oldest first. */
const childrenIn = async (
  { runs, events }: Views,
  what: TraceNode['what'],
  limit: number,
): Promise<readonly TraceNode['what'][]> => {
  const page = { limit, offset: 0, totals: false } as const
  if (!isRun(what)) {
    const started = await runs.find({ equal: { event_id: what.event_id }, sort: 'order', ...page })
    return started.items
  }
  const [called, sent, retry] = await Promise.all([
    runs.find({ equal: {}, sort: 'child_of', ...childrenOf(what.run_id), ...page }),
    events.find({ equal: {}, sort: 'sent_by', ...sentBy(what.run_id), ...page }),
    // Retries of a run with an event are beside it; those of a child are children of its caller.
    what.event_id === null && what.parent_run_id === null && what.retried_by !== null
      ? runs.get(what.retried_by)
      : null,
  ])
  const all = [...called.items, ...sent.items, ...(retry ? [retry] : [])]
  return all.sort((a, b) => (a.order < b.order ? -1 : 1)).slice(0, limit)
}
