import { AppError } from '../../errors.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'

/** The position at which a reader of a stream begins. */
export interface StreamStart {
  readonly stream_id: string
  /** Revision of the last fact that the reader has; -1 for none. */
  readonly after: number
  /** Whether the stream may be complete at once. Otherwise it is complete only after further activity. */
  readonly mayBeComplete: boolean
}

/** Begins the id of a reader that waits at what was the end: a quiet stream is not complete for it. */
const END_AT = 'end-'

/** The id of a position before the first event, with which a reader continues exactly as it began. */
export const positionOf = ({ after, mayBeComplete }: StreamStart): string =>
  after < 0 ? 'start' : `${mayBeComplete ? '' : END_AT}${after}`

/**
 * Converts `from` (`start`, `end`, or the revision of the reader's last fact) to a position (SPEC.md, Streams (SSE)).
 * Rejects with `not_found` for a stream of another environment (I7), or with `bad_request` for any other `from`, which the
 * client sent as `field`.
 */
export const startOfStream = async (
  { aggregates }: Pick<CommandDeps, 'aggregates'>,
  {
    stream_id,
    from = 'end',
    field = 'from',
  }: { stream_id: string; from?: string | undefined; field?: string },
  env_id: string,
): Promise<StreamStart> => {
  const { owner, last } = await aggregates.streams.read(streamOf.stream(stream_id), (state, revision) => ({
    owner: state.env_id,
    last: revision,
  }))
  if (owner !== env_id) throw new AppError('not_found', `No stream ${stream_id}`)
  if (from === 'end') return { stream_id, after: last, mayBeComplete: false }
  const revisionOf = (id: string) => checkedRevision(field, id, last)
  if (from.startsWith(END_AT))
    return { stream_id, after: revisionOf(from.slice(END_AT.length)), mayBeComplete: false }
  return { stream_id, after: from === 'start' ? -1 : revisionOf(from), mayBeComplete: true }
}

const checkedRevision = (field: string, id: string, last: number): number => {
  if (/^\d{1,15}$/.test(id) && Number(id) <= last) return Number(id)
  throw new AppError(
    'bad_request',
    `${field}: expected start, end or the id of an event of this stream, got "${id.slice(0, 60)}"`,
  )
}
