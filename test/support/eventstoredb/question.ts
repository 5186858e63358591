import type streams from '@eventstore/db-client/generated/streams_pb.js'
import { type Filter, filterOf, filterSpecOf } from './filter.ts'
import { nameOf } from './wire.ts'

/** The start of a read: a revision of a stream, or a position of the log. */
export type From = number | 'start' | 'end'

/** The parameters of a read. */
export interface Question {
  /** Undefined means `$all`. */
  readonly stream: string | undefined
  readonly from: From
  readonly backwards: boolean
  readonly limit: number
  readonly resolveLinks: boolean
  readonly subscribes: boolean
  readonly filter: Filter | undefined
}

/** Throws if the filter is not a regular expression. */
export const questionOf = (request: streams.ReadReq): Question => {
  const options = request.getOptions()
  const stream = options?.getStream()
  const all = options?.getAll()
  const place = stream ?? all
  const filter = options?.getFilter()
  const at = stream ? stream.getRevision() : all?.getPosition()?.getCommitPosition()
  return {
    stream: stream && nameOf(stream.getStreamIdentifier()),
    from: place?.hasStart() ? 'start' : place?.hasEnd() ? 'end' : Number(at),
    backwards: options?.getReadDirection() === 1,
    limit: Number(options?.getCount()),
    resolveLinks: options?.getResolveLinks() ?? false,
    subscribes: options?.hasSubscription() ?? false,
    filter: filter && filterOf(filterSpecOf(filter)),
  }
}
