import any from 'google-protobuf/google/protobuf/any_pb.js'
import empty from 'google-protobuf/google/protobuf/empty_pb.js'
import code from '@eventstore/db-client/generated/code_pb.js'
import shared from '@eventstore/db-client/generated/shared_pb.js'
import status from '@eventstore/db-client/generated/status_pb.js'
import { identifierOf } from './wire.ts'
import type { Expected } from './verdict.ts'

/** The error of an append in a batch call. The client recognizes its kind by the type of the details. */
const statusOf = (
  failure: code.Code,
  message: string,
  name: string,
  details: { serializeBinary(): Uint8Array },
): status.Status => {
  const packed = new any.Any()
  packed.pack(details.serializeBinary(), name)
  const made = new status.Status()
  made.setCode(failure)
  made.setMessage(message)
  made.setDetails(packed)
  return made
}

const { Code } = code

export const wrongVersion = (expected: Expected, actual: number): status.Status => {
  const details = new shared.WrongExpectedVersion()
  if (actual === -1) details.setCurrentNoStream(new empty.Empty())
  else details.setCurrentStreamRevision(String(actual))
  if (expected === 'none') details.setExpectedNoStream(new empty.Empty())
  else if (expected === 'any') details.setExpectedAny(new empty.Empty())
  else if (expected === 'exists') details.setExpectedStreamExists(new empty.Empty())
  else details.setExpectedStreamPosition(String(expected))
  return statusOf(
    Code.ALREADY_EXISTS,
    'WrongExpectedVersion',
    'event_store.client.WrongExpectedVersion',
    details,
  )
}

export const streamDeleted = (stream: string): status.Status => {
  const details = new shared.StreamDeleted()
  details.setStreamIdentifier(identifierOf(stream))
  return statusOf(Code.NOT_FOUND, 'StreamDeleted', 'event_store.client.StreamDeleted', details)
}

export const tooLarge = (limit: number): status.Status => {
  const details = new shared.MaximumAppendSizeExceeded()
  details.setMaxappendsize(limit)
  return statusOf(
    Code.INVALID_ARGUMENT,
    'MaximumAppendSizeExceeded',
    'event_store.client.MaximumAppendSizeExceeded',
    details,
  )
}

export const badRequest = (message: string): status.Status => {
  const details = new shared.BadRequest()
  details.setMessage(message)
  return statusOf(Code.INVALID_ARGUMENT, 'BadRequest', 'event_store.client.BadRequest', details)
}

export const timedOut = (): status.Status =>
  statusOf(Code.DEADLINE_EXCEEDED, 'Timeout', 'event_store.client.Timeout', new shared.Timeout())

export const notReady = (): status.Status =>
  statusOf(Code.UNAVAILABLE, 'Server Is Not Ready', 'google.protobuf.Empty', new empty.Empty())
