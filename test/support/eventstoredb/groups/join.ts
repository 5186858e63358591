import groups from '@eventstore/db-client/generated/persistent_pb.js'
import { admitted, failsNow, type Node } from '../node.ts'
import { groupMissing, type Refusal } from '../refusals.ts'
import { nameOf, uuidOf } from '../wire.ts'
import type { Consumer, GroupCall } from './consumer.ts'
import { ALL } from './definition.ts'
import type { Action, Group } from './group.ts'
import { joinedMessage } from './messages.ts'
import type { Registry } from './registry.ts'

const { Action: Sent } = groups.ReadReq.Nack

const ACTIONS: Readonly<Record<number, Action>> = {
  [Sent.PARK]: 'park',
  [Sent.RETRY]: 'retry',
  [Sent.SKIP]: 'skip',
  [Sent.STOP]: 'stop',
}

/** A client joins a group. Its first message names the group; the others acknowledge events. */
export const join = (node: Node, registry: Registry) => (call: GroupCall) => {
  let joined: { readonly group: Group; readonly consumer: Consumer } | undefined
  const isOpen = () => !call.cancelled && !call.writableEnded

  const begin = async (options: groups.ReadReq.Options): Promise<void> => {
    const refuse = (error: Refusal) => void call.emit('error', error)
    if (failsNow(node, 'consumer', { end: () => call.end(), refuse })) return
    const refusal = await admitted(node, 'groups', call.metadata)
    if (!isOpen()) return
    if (refusal) return void call.emit('error', refusal)
    const identifier = options.getStreamIdentifier()
    const stream = identifier ? nameOf(identifier) : ALL
    const group = registry.find(stream, options.getGroupName())
    if (!group) {
      return void call.emit('error', groupMissing({ stream, group: options.getGroupName() }))
    }
    const consumer = { call, bufferSize: options.getBufferSize(), inFlight: 0, total: 0 }
    const full = group.join(consumer)
    if (full) return void call.emit('error', full)
    joined = { group, consumer }
    call.write(joinedMessage(stream, options.getGroupName()))
    group.ack(consumer, []) // delivers the events that waited for a consumer
  }

  const take = (request: groups.ReadReq): void => {
    const options = request.getOptions()
    const [ack, nack] = [request.getAck(), request.getNack()]
    if (options) void begin(options)
    if (!joined) return
    const { group, consumer } = joined
    if (ack) group.ack(consumer, ack.getIdsList().map(uuidOf))
    const action = nack && ACTIONS[nack.getAction()]
    if (action) group.nack(consumer, nack.getIdsList().map(uuidOf), action, nack.getReason())
  }

  const leave = () => {
    stay()
    if (!node.killed.aborted) joined?.group.leave(joined.consumer)
    joined = undefined
  }
  const stay = node.misbehaviour.onEnd(() => call.end())
  call.on('data', (request: groups.ReadReq) => {
    const silence = node.misbehaviour.silenceOf('groups')
    if (silence) void silence.then(() => take(request))
    else take(request)
  })
  call.on('end', () => {
    leave()
    call.end()
  })
  call.on('cancelled', leave)
  call.on('finish', leave)
  call.on('error', leave)
}
