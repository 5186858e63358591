import type { handleUnaryCall } from '@grpc/grpc-js'
import type shared from '@eventstore/db-client/generated/shared_pb.js'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import { expectedOf } from './expected.ts'
import type { Appended } from './log.ts'
import { admitted, type Node } from './node.ts'
import { type Refusal, tombstoned, wrongVersion } from './refusals.ts'
import type { Expected } from './verdict.ts'
import { nameOf, placed } from './wire.ts'

interface Options {
  getStreamIdentifier(): shared.StreamIdentifier | undefined
  hasRevision(): boolean
  getRevision(): string
  hasNoStream(): boolean
  hasStreamExists(): boolean
}

/** Deletes a stream; a later append opens it again. */
export const softDelete =
  (node: Node): handleUnaryCall<streams.DeleteReq, streams.DeleteResp> =>
  (call, reply) => {
    const { DeleteResp } = streams
    const end = (stream: string, expected: Expected) => node.log.delete(stream, expected)
    void ended(node, call, end).then((result) => {
      if (typeof result === 'number') {
        const position = new DeleteResp.Position()
        reply(null, new DeleteResp().setPosition(placed(position, result)))
      } else reply(result)
    })
  }

/** Ends a stream for ever. */
export const tombstone =
  (node: Node): handleUnaryCall<streams.TombstoneReq, streams.TombstoneResp> =>
  (call, reply) => {
    const { TombstoneResp } = streams
    const end = (stream: string, expected: Expected) => node.log.tombstone(stream, expected)
    void ended(node, call, end).then((result) => {
      if (typeof result === 'number') {
        const position = new TombstoneResp.Position()
        reply(null, new TombstoneResp().setPosition(placed(position, result)))
      } else reply(result)
    })
  }

/** Returns the position of the end, or the reason why there is none. */
const ended = async (
  node: Node,
  call: { request: { getOptions(): Options | undefined }; metadata: Parameters<typeof admitted>[2] },
  end: (stream: string, expected: Expected) => Appended,
): Promise<number | Refusal> => {
  const refusal = await admitted(node, 'appends', call.metadata)
  if (refusal) return refusal
  const options = call.request.getOptions()
  const stream = nameOf(options?.getStreamIdentifier())
  const expected = expectedOf(options, options?.hasRevision() ? options.getRevision() : undefined)
  const outcome = end(stream, expected)
  if (outcome.kind === 'appended') return outcome.position
  if (outcome.kind === 'tombstoned') return tombstoned(stream)
  return wrongVersion(stream, numberOf(expected), outcome.actual)
}

const numberOf = (expected: Expected): number =>
  typeof expected === 'number' ? expected : { none: -1, any: -2, exists: -4 }[expected]
