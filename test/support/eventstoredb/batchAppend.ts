import { randomUUID } from 'node:crypto'
import type { ServerDuplexStream } from '@grpc/grpc-js'
import type streams from '@eventstore/db-client/generated/streams_pb.js'
import { clock } from '../../../src/clock.ts'
import { type Pending, pendingOf, responseOf, resultOf } from './batchMessages.ts'
import { badRequest, notReady, timedOut, tooLarge } from './batchStatus.ts'
import type { AppendFault } from './misbehaviour.ts'
import { failsNow, type Node } from './node.ts'
import type { Refusal } from './refusals.ts'
import { proposedOf, sizeOf, uuidOf } from './wire.ts'
import { MAX_APPEND_BYTES, write } from './write.ts'

type Call = ServerDuplexStream<streams.BatchAppendReq, streams.BatchAppendResp>
type Result = ReturnType<typeof resultOf>

/** The server abandons a write after this long, even if the client allows more. */
const WRITE_TIMEOUT_MS = 2000
/** The server does not attempt a write that has less time left, because a disk write takes longer. */
const SHORTEST_WRITE_MS = 2

/** One call that carries all appends of a client. Each reply has the correlation id of its append. */
export const batchAppend = (node: Node) => (call: Call) => {
  const pending = new Map<string, Pending>()
  const reply = ({ correlation, stream }: Pending, result: Result, to = correlation): void => {
    if (!call.cancelled && !call.writableEnded) call.write(responseOf(to, stream, result))
  }

  const take = (request: streams.BatchAppendReq): void => {
    const correlation = uuidOf(request.getCorrelationId())
    const options = request.getOptions()
    const one = pending.get(correlation) ?? (options && pendingOf(correlation, options))
    if (!one) return // the rest of an append that was refused
    pending.set(correlation, one)
    for (const message of request.getProposedMessagesList()) {
      const event = proposedOf(message)
      one.events.push(event)
      one.bytes += sizeOf(event)
    }
    const isTooLarge = one.bytes > MAX_APPEND_BYTES
    if (isTooLarge || request.getIsFinal()) pending.delete(correlation)
    if (isTooLarge) reply(one, tooLarge(MAX_APPEND_BYTES))
    else if (request.getIsFinal()) finish(one)
  }

  const finish = (one: Pending): void => {
    if (node.killed.aborted) return // the node was killed while it was silent
    const refusal = node.misbehaviour.refusalOf('appends')
    if (refusal?.metadata.get('exception').length) return void call.emit('error', refusal)
    if (refusal) return reply(one, notReady())
    if (one.deadline - clock.now() < SHORTEST_WRITE_MS) return reply(one, timedOut())
    if (one.stream === '') return reply(one, badRequest('stream name'))
    if (one.events.some(({ type }) => type === '')) {
      reply(one, badRequest('event type')) // the server replies again when the write times out
      return later(() => reply(one, timedOut()), WRITE_TIMEOUT_MS)
    }
    const { outcome, fault } = write(node, one.stream, one.events, one.expected)
    const result = resultOf(one, outcome)
    if (fault) misanswer(one, result, fault)
    else reply(one, result)
  }

  const misanswer = (one: Pending, result: Result, { reply: how, afterMs = 0 }: AppendFault): void => {
    if (how === 'never') return
    if (how === 'drop') return node.reset(call.getPeer())
    if (how === 'late') return later(() => reply(one, result), afterMs)
    if (how === 'timeout') return later(() => reply(one, timedOut()), afterMs)
    if (how === 'stranger') reply(one, result, randomUUID())
    if (how === 'twice') later(() => reply(one, result), afterMs)
    reply(one, how === 'not ready' ? notReady() : result)
  }

  const serve = (request: streams.BatchAppendReq): void => {
    const silence = node.misbehaviour.silenceOf('appends')
    if (silence) void silence.then(() => take(request))
    else take(request)
  }
  call.on('end', () => call.end())
  call.on('error', () => {}) // the client has disconnected
  const refuse = (refusal: Refusal) => void call.emit('error', refusal)
  const fails = failsNow(node, 'append', { end: () => call.end(), refuse })
  call.on('data', fails ? () => {} : serve)
}

const later = (act: () => void, ms: number): void => void setTimeout(act, ms).unref()
