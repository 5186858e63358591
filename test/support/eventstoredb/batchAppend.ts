import { randomUUID } from 'node:crypto'
import type { ServerDuplexStream } from '@grpc/grpc-js'
import { createUUID } from '@eventstore/db-client/dist/utils/grpcUUID.js'
import shared from '@eventstore/db-client/generated/shared_pb.js'
import type status from '@eventstore/db-client/generated/status_pb.js'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import empty from 'google-protobuf/google/protobuf/empty_pb.js'
import { clock } from '../../../src/clock.ts'
import * as failed from './batchStatus.ts'
import type { Appended } from './log.ts'
import type { AppendFault } from './misbehaviour.ts'
import type { Node } from './node.ts'
import type { Proposed } from './stored.ts'
import type { Expected } from './verdict.ts'
import { identifierOf, nameOf, proposedOf, sizeOf, uuidOf } from './wire.ts'
import { MAX_APPEND_BYTES, write } from './write.ts'

type Call = ServerDuplexStream<streams.BatchAppendReq, streams.BatchAppendResp>

/** One append, which may come in several messages. */
interface Pending {
  readonly correlation: string
  readonly stream: string
  readonly expected: Expected
  /** Milliseconds since 1970, by the clock of the client. */
  readonly deadline: number
  readonly events: Proposed[]
  bytes: number
}

/** The server gives a write up after this long, whatever the client allows. */
const WRITE_TIMEOUT_MS = 2000
/** A write on disk takes so long that what has less time left is not tried. */
const SHORTEST_WRITE_MS = 2

/** One call that carries all appends of a client: each is answered by its correlation id. */
export const batchAppend = (node: Node) => (call: Call) => {
  const pending = new Map<string, Pending>()
  const reply = (one: Pending, result: status.Status | Appended, correlation = one.correlation): void => {
    if (!call.cancelled && !call.writableEnded) call.write(responseOf(correlation, one, result))
  }

  const finish = (one: Pending): void => {
    if (node.killed.aborted) return
    const refusal = node.misbehaviour.refusalOf('appends')
    if (refusal?.metadata.get('exception').length) return void call.emit('error', refusal)
    if (refusal) return reply(one, failed.notReady())
    if (one.deadline - clock.now() < SHORTEST_WRITE_MS) return reply(one, failed.timedOut())
    if (one.stream === '') return reply(one, failed.badRequest('stream name'))
    if (one.events.some(({ type }) => type === '')) {
      reply(one, failed.badRequest('event type')) // and again, when the write that never was times out
      return later(() => reply(one, failed.timedOut()), WRITE_TIMEOUT_MS)
    }
    const { outcome, fault } = write(node, one.stream, one.events, one.expected)
    if (!fault) reply(one, resultOf(one, outcome))
    else misanswer(one, outcome, fault)
  }

  const misanswer = (one: Pending, outcome: Appended | undefined, fault: AppendFault): void => {
    const result = resultOf(one, outcome)
    const { reply: how, afterMs = 0 } = fault
    if (how === 'never') return
    if (how === 'drop') return node.reset(call.getPeer())
    if (how === 'late') return later(() => reply(one, result), afterMs)
    if (how === 'timeout') return later(() => reply(one, failed.timedOut()), afterMs)
    if (how === 'stranger') reply(one, result, randomUUID())
    if (how === 'twice') later(() => reply(one, result), afterMs)
    reply(one, how === 'not ready' ? failed.notReady() : result)
  }

  const take = (request: streams.BatchAppendReq): void => {
    const correlation = uuidOf(request.getCorrelationId())
    const options = request.getOptions()
    const one = pending.get(correlation) ?? (options && pendingOf(correlation, options))
    if (!one) return // the rest of one that was refused
    pending.set(correlation, one)
    for (const message of request.getProposedMessagesList()) {
      const event = proposedOf(message)
      one.events.push(event)
      one.bytes += sizeOf(event)
    }
    const tooLarge = one.bytes > MAX_APPEND_BYTES
    if (tooLarge || request.getIsFinal()) pending.delete(correlation)
    if (tooLarge) reply(one, failed.tooLarge(MAX_APPEND_BYTES))
    else if (request.getIsFinal()) finish(one)
  }

  call.on('data', (request: streams.BatchAppendReq) => {
    const silence = node.misbehaviour.silenceOf('appends')
    if (silence) void silence.then(() => take(request))
    else take(request)
  })
  call.on('end', () => call.end())
  call.on('error', () => {}) // the client has gone
}

const later = (act: () => void, ms: number): void => void setTimeout(act, ms).unref()

const pendingOf = (correlation: string, options: streams.BatchAppendReq.Options): Pending => ({
  correlation,
  stream: nameOf(options.getStreamIdentifier()),
  expected: options.hasNoStream()
    ? 'none'
    : options.hasStreamExists()
      ? 'exists'
      : options.hasStreamPosition()
        ? Number(options.getStreamPosition())
        : 'any',
  deadline: options.getDeadline()?.toDate().getTime() ?? Infinity,
  events: [],
  bytes: 0,
})

const resultOf = ({ stream, expected }: Pending, outcome: Appended | undefined): status.Status | Appended => {
  if (!outcome) return failed.timedOut() // not written, yet answered
  if (outcome.kind === 'appended') return outcome
  return outcome.kind === 'wrong'
    ? failed.wrongVersion(expected, outcome.actual)
    : failed.streamDeleted(stream)
}

const responseOf = (
  correlation: string,
  { stream }: Pending,
  result: status.Status | Appended,
): streams.BatchAppendResp => {
  const response = new streams.BatchAppendResp()
  response.setCorrelationId(createUUID(correlation))
  response.setStreamIdentifier(identifierOf(stream))
  if (!('kind' in result)) return response.setError(result)
  if (result.kind !== 'appended') return response
  const success = new streams.BatchAppendResp.Success()
  if (result.revision < 0) success.setNoStream(new empty.Empty())
  else success.setCurrentRevision(String(result.revision))
  const position = new shared.AllStreamPosition()
  position.setCommitPosition(String(result.position))
  position.setPreparePosition(String(result.position))
  success.setPosition(position)
  return response.setSuccess(success)
}
