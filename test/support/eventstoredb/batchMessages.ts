import { createUUID } from '@eventstore/db-client/dist/utils/grpcUUID.js'
import shared from '@eventstore/db-client/generated/shared_pb.js'
import type status from '@eventstore/db-client/generated/status_pb.js'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import empty from 'google-protobuf/google/protobuf/empty_pb.js'
import { streamDeleted, timedOut, wrongVersion } from './batchStatus.ts'
import { expectedOf } from './expected.ts'
import type { Appended } from './log.ts'
import type { Proposed } from './stored.ts'
import type { Expected } from './verdict.ts'
import { identifierOf, nameOf, placed } from './wire.ts'

/** One append of a batch call, which may come in several messages. */
export interface Pending {
  readonly correlation: string
  readonly stream: string
  readonly expected: Expected
  /** Milliseconds since 1970, by the clock of the client. */
  readonly deadline: number
  readonly events: Proposed[]
  bytes: number
}

export const pendingOf = (correlation: string, options: streams.BatchAppendReq.Options): Pending => ({
  correlation,
  stream: nameOf(options.getStreamIdentifier()),
  expected: expectedOf(options, options.hasStreamPosition() ? options.getStreamPosition() : undefined),
  deadline: options.getDeadline()?.toDate().getTime() ?? Infinity,
  events: [],
  bytes: 0,
})

/** The outcome of an append. One that a fault kept from the log is reported as timed out. */
export const resultOf = (
  { stream, expected }: Pending,
  outcome: Appended | undefined,
): status.Status | streams.BatchAppendResp.Success => {
  if (!outcome) return timedOut()
  if (outcome.kind === 'wrong') return wrongVersion(expected, outcome.actual)
  if (outcome.kind === 'tombstoned') return streamDeleted(stream)
  const success = new streams.BatchAppendResp.Success()
  if (outcome.revision < 0) success.setNoStream(new empty.Empty())
  else success.setCurrentRevision(String(outcome.revision))
  return success.setPosition(placed(new shared.AllStreamPosition(), outcome.position))
}

export const responseOf = (
  correlation: string,
  stream: string,
  result: status.Status | streams.BatchAppendResp.Success,
): streams.BatchAppendResp => {
  const response = new streams.BatchAppendResp()
  response.setCorrelationId(createUUID(correlation))
  response.setStreamIdentifier(identifierOf(stream))
  return result instanceof streams.BatchAppendResp.Success
    ? response.setSuccess(result)
    : response.setError(result)
}
