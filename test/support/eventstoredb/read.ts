import type { ServerWritableStream } from '@grpc/grpc-js'
import type streams from '@eventstore/db-client/generated/streams_pb.js'
import { send } from './flow.ts'
import { resolve } from './links.ts'
import type { Log } from './log.ts'
import type { Node } from './node.ts'
import { type From, type Question } from './question.ts'
import { tombstoned, unexpectedResult } from './refusals.ts'
import { eventMessage, notFoundMessage } from './responses.ts'
import type { Stored } from './stored.ts'

type Call = ServerWritableStream<streams.ReadReq, streams.ReadResp>

/** Answers a bounded read: a part of a stream or of `$all`, in either direction. */
export const read = async (call: Call, question: Question, { log, misbehaviour }: Node): Promise<void> => {
  const { stream, limit, from, resolveLinks } = question
  const what = stream === undefined ? 'ReadAllResult' : 'ReadStreamResult'
  if (limit === 0) return void call.emit('error', unexpectedResult(what, 'Error'))
  if (stream !== undefined && log.isTombstoned(stream)) return void call.emit('error', tombstoned(stream))
  if (stream === undefined && typeof from === 'number' && !log.isPlace(from)) {
    return void call.emit('error', unexpectedResult(what, 'InvalidPosition'))
  }
  if (stream !== undefined && log.isMissing(stream)) {
    call.write(notFoundMessage(stream))
    return void call.end()
  }
  let left = Math.min(limit, misbehaviour.readCut())
  for (const stored of stream === undefined ? partOfAll(log, question) : partOf(log, stream, question)) {
    if (left-- === 0 || call.cancelled) break
    await send(call, eventMessage(resolve(log, stored, resolveLinks)))
  }
  call.end()
}

/** Reads `$all`. Forwards, the event at the position is the first; backwards, the event before it. */
function* partOfAll(log: Log, { from, backwards, filter }: Question): Generator<Stored> {
  const all = log.all
  const end = all.length // later events are not part of this read
  const start = indexOf(from, end, (position) => log.indexOf(position))
  const step = backwards ? -1 : 1
  for (let at = backwards ? start - 1 : start; at >= 0 && at < end; at += step) {
    const event = all[at] as Stored
    if (!filter || filter.matches(event)) yield event
  }
}

/** Reads a stream. The event at the revision is the first in both directions. */
function* partOf(log: Log, stream: string, { from, backwards }: Question): Generator<Stored> {
  const events = log.events(stream)
  const end = events.length
  const first = log.firstShown(stream)
  const start = indexOf(from, end, (revision) => revision)
  if (backwards) for (let at = Math.min(start, end - 1); at >= first; at--) yield events[at] as Stored
  else for (let at = Math.max(start, first); at < end; at++) yield events[at] as Stored
}

const indexOf = (from: From, end: number, of: (place: number) => number): number =>
  from === 'start' ? 0 : from === 'end' ? end : of(from)
