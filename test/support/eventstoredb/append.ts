import type { sendUnaryData, ServerReadableStream } from '@grpc/grpc-js'
import shared from '@eventstore/db-client/generated/shared_pb.js'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import { expectedOf } from './expected.ts'
import type { Appended } from './log.ts'
import type { AppendFault } from './misbehaviour.ts'
import { admitted, type Node } from './node.ts'
import { badArgument, commitTimeout, notReady, tombstoned, tooLarge } from './refusals.ts'
import type { Proposed } from './stored.ts'
import type { Expected } from './verdict.ts'
import { nameOf, placed, proposedOf, sizeOf } from './wire.ts'
import { MAX_APPEND_BYTES, write } from './write.ts'

type Call = ServerReadableStream<streams.AppendReq, streams.AppendResp>
type Reply = sendUnaryData<streams.AppendResp>

const { Success, WrongExpectedVersion, Position } = streams.AppendResp

/** An append in a call of its own. */
export const append = (node: Node) => (call: Call, reply: Reply) => {
  let options: streams.AppendReq.Options | undefined
  const events: Proposed[] = []
  call.on('data', (request: streams.AppendReq) => {
    options ??= request.getOptions()
    const message = request.getProposedMessage()
    if (message) events.push(proposedOf(message))
  })
  call.on('end', () => {
    void admitted(node, 'appends', call.metadata).then((refusal) => {
      if (refusal) reply(refusal)
      else answer(node, call, reply, options ?? new streams.AppendReq.Options(), events)
    })
  })
}

const answer = (
  node: Node,
  call: Call,
  reply: Reply,
  options: streams.AppendReq.Options,
  events: readonly Proposed[],
): void => {
  const stream = nameOf(options.getStreamIdentifier())
  const expected = expectedOf(options, options.hasRevision() ? options.getRevision() : undefined)
  if (events.some(({ type }) => type === '')) return reply(badArgument('Required metadata property type'))
  if (events.reduce((sum, event) => sum + sizeOf(event), 0) > MAX_APPEND_BYTES) {
    return reply(tooLarge(MAX_APPEND_BYTES))
  }
  const { outcome, fault } = write(node, stream, events, expected)
  const end = () => {
    if (!outcome) reply(commitTimeout())
    else if (outcome.kind === 'tombstoned') reply(tombstoned(stream))
    else reply(null, responseOf(outcome, expected))
  }
  if (!fault) end()
  else misanswer(node, call, reply, fault, end)
}

const misanswer = (
  node: Node,
  call: Call,
  reply: Reply,
  { reply: how, afterMs = 0 }: AppendFault,
  end: () => void,
): void => {
  if (how === 'never') return
  if (how === 'drop') node.reset(call.getPeer())
  else if (how === 'not ready') reply(notReady())
  else if (how === 'timeout') setTimeout(() => reply(commitTimeout()), afterMs).unref()
  else setTimeout(end, how === 'late' ? afterMs : 0)
}

const responseOf = (outcome: Exclude<Appended, { kind: 'tombstoned' }>, expected: Expected) => {
  const response = new streams.AppendResp()
  if (outcome.kind === 'wrong') {
    const wrong = new WrongExpectedVersion()
    if (outcome.actual === -1) wrong.setCurrentNoStream(new shared.Empty())
    else wrong.setCurrentRevision(String(outcome.actual))
    if (expected === 'none') wrong.setExpectedNoStream(new shared.Empty())
    else if (expected === 'exists') wrong.setExpectedStreamExists(new shared.Empty())
    else if (expected === 'any') wrong.setExpectedAny(new shared.Empty())
    else wrong.setExpectedRevision(String(expected))
    return response.setWrongExpectedVersion(wrong)
  }
  const success = new Success()
  if (outcome.revision < 0) success.setNoStream(new shared.Empty())
  else success.setCurrentRevision(String(outcome.revision))
  return response.setSuccess(success.setPosition(placed(new Position(), outcome.position)))
}
