import { randomUUID } from 'node:crypto'
import type { ServerWritableStream } from '@grpc/grpc-js'
import type streams from '@eventstore/db-client/generated/streams_pb.js'
import { feedOfAll, feedOfStream } from './feed.ts'
import { send } from './flow.ts'
import { resolve } from './links.ts'
import type { Node } from './node.ts'
import type { Question } from './question.ts'
import { tombstoned, unexpectedResult } from './refusals.ts'
import {
  caughtUpMessage,
  checkpointMessage,
  confirmationMessage,
  eventMessage,
  fellBehindMessage,
} from './responses.ts'

type Call = ServerWritableStream<streams.ReadReq, streams.ReadResp>

/** Events that a live subscription may be behind before it has to catch up again. */
const LIVE_EVENTS = 32

/** A subscription to a stream or to `$all`: stored events, then new events, until the caller leaves. */
export const subscribe = (call: Call, question: Question, node: Node): void => {
  const { log, misbehaviour } = node
  const { stream, from, filter, resolveLinks } = question
  if (stream === undefined && typeof from === 'number' && !log.isPlace(from)) {
    return void call.emit('error', unexpectedResult('ReadAllResult', 'InvalidPosition'))
  }
  if (stream !== undefined && log.isTombstoned(stream)) return void call.emit('error', tombstoned(stream))
  const feed = stream === undefined ? feedOfAll(log, from, false) : feedOfStream(log, stream, from, false)
  let live = false
  let pumping = false
  let considered = 0

  const isOpen = () => !call.cancelled && !call.writableEnded
  /** Advances by one message or event. Returns a promise if it must wait, and false if there is nothing to send. */
  const step = (): Promise<void> | boolean => {
    const silence = misbehaviour.silenceOf('subscriptions')
    if (silence) return silence
    if (live && feed.behind > LIVE_EVENTS) {
      live = false
      return send(call, fellBehindMessage()) ?? true
    }
    const stored = feed.next()
    if (!stored) {
      if (live) return false
      live = true
      return send(call, caughtUpMessage()) ?? true
    }
    const due = filter && ++considered % filter.checkpointEvery === 0
    const room =
      !filter || filter.matches(stored)
        ? send(call, eventMessage(resolve(log, stored, resolveLinks)))
        : undefined
    return (due ? send(call, checkpointMessage(stored.position)) : room) ?? true
  }
  const pump = async (): Promise<void> => {
    if (pumping) return
    pumping = true
    for (let going = isOpen(); going;) {
      const stepped = step()
      if (typeof stepped === 'object') await stepped
      going = isOpen() && stepped !== false
    }
    pumping = false
    if (isOpen() && stream !== undefined && log.isTombstoned(stream)) call.emit('error', tombstoned(stream))
  }

  const wake = () => void pump()
  const leave = [log.onChange(wake), misbehaviour.onEnd(() => call.end())]
  const over = () => {
    for (const stop of leave) stop()
  }
  call.on('cancelled', over)
  call.on('finish', over)
  call.write(confirmationMessage(randomUUID()))
  wake()
}
