import type { ServerWritableStream } from '@grpc/grpc-js'
import type { IStreamsServer } from '@eventstore/db-client/generated/streams_grpc_pb.js'
import type streams from '@eventstore/db-client/generated/streams_pb.js'
import { append } from './append.ts'
import { batchAppend } from './batchAppend.ts'
import { softDelete, tombstone } from './end.ts'
import { admitted, failsNow, type Node } from './node.ts'
import { type Question, questionOf } from './question.ts'
import { read } from './read.ts'
import { handlerThrew, type Refusal } from './refusals.ts'
import { subscribe } from './subscribe.ts'

/** The service of streams. */
export const streamsService = (node: Node): IStreamsServer => ({
  append: append(node),
  batchAppend: batchAppend(node),
  delete: softDelete(node),
  tombstone: tombstone(node),
  read: (call) => void answer(call, node),
})

const answer = async (
  call: ServerWritableStream<streams.ReadReq, streams.ReadResp>,
  node: Node,
): Promise<void> => {
  let question: Question
  try {
    question = questionOf(call.request)
  } catch {
    return void call.emit('error', handlerThrew()) // the filter is not a regular expression
  }
  const kind = question.subscribes ? 'subscription' : 'read'
  const refuse = (refusal: Refusal) => void call.emit('error', refusal)
  if (failsNow(node, kind, { end: () => call.end(), refuse })) return
  const refusal = await admitted(node, question.subscribes ? 'subscriptions' : 'reads', call.metadata)
  if (call.cancelled) return
  if (refusal) call.emit('error', refusal)
  else if (question.subscribes) subscribe(call, question, node)
  else await read(call, question, node)
}
