import { AppError } from '../../errors.ts'
import { CALL } from '../../events/eventType.ts'
import { payloadOf } from '../../events/payload.ts'
import { streamOf } from '../../events/streams.ts'
import type { Deployed } from '../../projections/wiring.ts'
import type { Caller } from '../deps.ts'
import { calledRunIdOf } from '../events/planRuns.ts'
import { type EventToPublish, type PublishedEvent, storeChecked } from '../events/publishEvent.ts'
import { readFact } from '../streams/readFact.ts'

type Deps = Parameters<typeof storeChecked>[0]

type Call = Omit<EventToPublish, 'event_type' | 'event_data'> & {
  readonly ref: string
  readonly args: unknown
}

export interface PublishedCall {
  readonly event_id: string
  readonly stream_id: string
  /** The run that the event starts. */
  readonly run_id: string
  /** Revision of the event in its stream. */
  readonly revision: number
}

/**
 * Publishes the `svc:call` event of the function that `find` returns. A request that is repeated with its `Idempotency-Key` gets the run
 * of its first attempt, also if the function was deleted or another one has its reference since then. Rejects as `find` does,
 * or with `quota_exceeded`.
 */
export const publishCall = async (
  deps: Deps,
  { ref, args, ...event }: Call,
  find: () => Promise<Deployed> | Deployed,
  caller: Caller,
): Promise<PublishedCall> => {
  const data = { fn: ref, args }
  const calling = async () => ({ ...data, project: (await find()).project.project_id })
  const published = await storeChecked(
    deps,
    { ...event, event_type: CALL, event_data: data },
    calling,
    caller,
  )
  const { event_id, stream_id } = published.event
  const { project } = (await dataOf(deps, published)) as { readonly project: string }
  return { event_id, stream_id, run_id: calledRunIdOf(event_id, project, ref), revision: published.revision }
}

/** The data of a call as it is stored: an earlier attempt may have called a function of another project. */
const dataOf = async (
  { store, payloads }: Pick<Deps, 'store' | 'payloads'>,
  { event: { event_data, stream_id }, revision, cursor }: PublishedEvent,
): Promise<unknown> => {
  if (cursor !== null) return event_data
  const stored = (await readFact(store, streamOf.stream(stream_id), revision))?.event
  if (stored?.type === 'EventPublished') return payloads.loadLoosely(payloadOf('event_data', stored))
  throw new AppError('unavailable', `The event store returned no event at ${stream_id} ${revision}`)
}
