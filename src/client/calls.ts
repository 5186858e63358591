import type { PublishedEvent, Run } from './api.ts'
import type { Call, ResultOptions } from './client.ts'
import { RunError, ServiceError } from './errors.ts'
import { followEvents } from './follow.ts'
import { dataOf, type Send } from './transport.ts'
import { reasonOf } from './wait.ts'

/** Adds `result` to the promise of a published call. */
export const callOf = <Result>(send: Send, published: Promise<PublishedEvent>): Call<Result> => {
  const ended = (options?: ResultOptions): Promise<Run> =>
    within(options, async (signal) => {
      const { event_id, stream_id } = await published
      const isOurs = (run: Run) => run.event_id === event_id && run.parent_run_id === null
      return endOf(send, { stream_id, isOurs, ended: () => endedOf(send, event_id, signal) }, signal)
    })
  return Object.assign(published, {
    ended,
    result: async (options?: ResultOptions): Promise<Result> => valueOf(await ended(options)) as Result,
  })
}

/** Waits for the end of a run that may have ended already. */
export const runEnded = (send: Send, run_id: string, options?: ResultOptions): Promise<Run> =>
  within(options, async (signal) => {
    const input = { path: { run_id }, signal }
    const get = async () => (await dataOf(await send('GET /v1/runs/{run_id}', input))) as Run
    const { stream_id, origin_run_id } = await get()
    const first = origin_run_id ?? run_id
    const isOurs = (run: Run) => run.run_id === first || run.origin_run_id === first
    return endOf(send, { stream_id, isOurs, ended: get }, signal)
  })

/** Rejects when the signal aborts or the time is over, whatever the work is waiting for. */
const within = async (
  { timeoutMs, signal }: ResultOptions = {},
  work: (signal: AbortSignal) => Promise<Run>,
): Promise<Run> => {
  const late = timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs)
  const either = AbortSignal.any([signal, late].filter((each) => each !== undefined))
  let stop = () => {}
  const stopped = new Promise<never>((_, reject) => {
    stop = () => reject(reasonOf(either))
  })
  either.addEventListener('abort', stop)
  if (either.aborted) stop()
  try {
    return await Promise.race([work(either), stopped])
  } catch (error) {
    if (signal?.aborted) throw reasonOf(signal)
    if (late?.aborted)
      throw new ServiceError('timeout', `The run has not ended within ${timeoutMs} ms; it continues`, {
        cause: error,
      })
    throw error
  } finally {
    either.removeEventListener('abort', stop)
  }
}

interface Awaited {
  readonly stream_id: string
  /** Whether a run is the awaited one or one of its retries. */
  readonly isOurs: (run: Run) => boolean
  /** Reads the run when its stream is complete without its end: it was cancelled before it began. */
  readonly ended: () => Promise<Run>
}

const endOf = async (
  send: Send,
  { stream_id, isOurs, ended }: Awaited,
  signal: AbortSignal,
): Promise<Run> => {
  const operation = 'GET /v1/streams/{stream_id}/subscribe'
  const input = { path: { stream_id }, signal }
  for await (const { event, data } of followEvents({ send, operation, input, from: 'start' })) {
    if (event !== 'run:stop' && event !== 'run:fail' && event !== 'run:cancel') continue
    const { run } = data as { readonly run: Run }
    if (isOurs(run) && run.status !== 'pending_retry') return run
  }
  return ended()
}

const endedOf = async (send: Send, event_id: string, signal: AbortSignal): Promise<Run> => {
  const input = { path: { event_id }, query: { limit: 1 }, signal }
  const { data } = (await dataOf(await send('GET /v1/events/{event_id}/runs', input))) as {
    readonly data: readonly Run[]
  }
  const [run] = data
  if (run) return run
  throw new ServiceError('not_found', `The event ${event_id} started no run`)
}

/** The result of a run that has succeeded; throws the error of any other. */
export const valueOf = (run: Run): unknown => {
  if (run.status === 'succeeded') return run.result
  throw new RunError(run)
}
