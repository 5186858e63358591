import type { Cursor } from '../../events/event.ts'
import { isControl } from '../../events/eventType.ts'
import { atMost } from '../../loops/deadline.ts'
import type { CommandDeps } from '../deps.ts'

/** Time that the reply of an event without a known handler waits for deployments of other nodes. */
const DEPLOYED_MS = 1000

/**
 * Counts the handlers of an event that was published at the cursor, when its append did not already plan their runs.
 * A count of 0 is certain: it contains everything that was deployed before the event. Undefined for a control event, and
 * if this node does not learn of those deployments in time.
 */
export const countHandlers = async (
  { views: { directory } }: Pick<CommandDeps, 'views'>,
  { env_id, event_type }: { readonly env_id: string; readonly event_type: string },
  cursor: Cursor | null,
): Promise<number | undefined> => {
  if (isControl(event_type) || directory.unreadableIn(env_id).length > 0) return undefined
  const count = () => directory.handlersOf(env_id, event_type).length
  if (count() > 0 || cursor === null) return count()
  const isCertain = await atMost(
    DEPLOYED_MS,
    directory.reach(cursor).then(() => true),
  )
  return isCertain ? count() : undefined
}
