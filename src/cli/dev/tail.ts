import { setTimeout as delay } from 'node:timers/promises'
import { BoundedMap } from '../../boundedMap.ts'
import type { Run } from '../../client/api.ts'
import { type Client, ServiceError } from '../../client/index.ts'
import { isTransient } from '../../client/transport.ts'

/** A run that has ended, or waits for its next attempt. */
export interface EndedRun {
  readonly run: Run
  /** The type of the event that started it; else the type of the run. */
  readonly cause: string
}

/** Event types that are remembered until their runs end. */
const MAX_EVENTS = 1000

/** A run that was just reported can be unknown to a reader for a moment. */
const READ_ATTEMPTS = 5
const READ_PAUSE_MS = 50

/** The present end of the activity of the environment, from which `tailRuns` loses nothing. */
export const endOfActivity = async (client: Client): Promise<string> => {
  const connection = new AbortController()
  const { headers } = await client.open('GET /v1/env/subscribe', {
    query: { from: 'end' },
    headers: { accept: 'text/event-stream' },
    signal: connection.signal,
  })
  connection.abort()
  return headers.get('stream-position') ?? 'end'
}

/** Yields the runs of a project as they end, until the signal aborts. */
export async function* tailRuns(
  client: Client,
  project: () => string,
  { from, signal }: { readonly from: string; readonly signal: AbortSignal },
): AsyncGenerator<EndedRun, void, undefined> {
  const types = new BoundedMap<string, string>(MAX_EVENTS)
  for await (const { event, data } of client.followEnv({ from, signal })) {
    if (event === 'event:created') types.set(data.event_id, data.event_type)
    if (event !== 'run:stop' && event !== 'run:fail' && event !== 'run:cancel') continue
    const run = await readRun(client, data.run_id, signal)
    if (run?.project_name !== project()) continue
    const cause = (run.event_id !== null && types.get(run.event_id)) || run.run_type
    const retry_at = event === 'run:fail' ? data.retry_at : null
    // The next attempt may have begun before the run was read.
    yield { run: retry_at === null ? run : { ...run, status: 'pending_retry', retry_at }, cause }
  }
}

/** Resolves with null if the run is not found: it was deleted with its project. Waits for a service that cannot reply now. */
export const readRun = async (
  client: Pick<Client, 'runs'>,
  run_id: string,
  signal: AbortSignal,
): Promise<Run | null> => {
  for (let attempt = 1; attempt <= READ_ATTEMPTS;) {
    try {
      return await client.runs.get(run_id, { signal })
    } catch (error) {
      const isAbsent = error instanceof ServiceError && error.code === 'not_found'
      if (!isAbsent && !(error instanceof ServiceError && isTransient(error))) throw error
      if (isAbsent) attempt++
      const askedMs = isAbsent ? 0 : (error.retryAfter ?? 0) * 1000
      await delay(Math.max(READ_PAUSE_MS * attempt, askedMs), undefined, { signal })
    }
  }
  return null
}
