import type { handleUnaryCall, ServerUnaryCall } from '@grpc/grpc-js'
import type { IPersistentSubscriptionsServer } from '@eventstore/db-client/generated/persistent_grpc_pb.js'
import groups from '@eventstore/db-client/generated/persistent_pb.js'
import shared from '@eventstore/db-client/generated/shared_pb.js'
import { admitted, failsNow, type Node } from '../node.ts'
import { groupExists, groupMissing, handlerThrew, Refusal } from '../refusals.ts'
import { nameOf } from '../wire.ts'
import { ALL, definitionOf } from './definition.ts'
import type { Group } from './group.ts'
import { infoOf } from './info.ts'
import { join } from './join.ts'
import { Registry } from './registry.ts'

interface Named {
  getStreamIdentifier(): shared.StreamIdentifier | undefined
  getGroupName(): string
}

/** The service of persistent subscriptions. */
export const groupsService = (node: Node): IPersistentSubscriptionsServer => {
  const registry = new Registry(node)

  /** A call with one reply. `answer` returns the message or throws the error. */
  const once =
    <Request, Response>(
      answer: (request: Request, call: ServerUnaryCall<Request, Response>) => Response,
    ): handleUnaryCall<Request, Response> =>
    (call, reply) => {
      if (failsNow(node, 'group', { refuse: reply })) return
      void admitted(node, 'groups', call.metadata)
        .then((refusal) => {
          if (refusal) throw refusal
          return answer(call.request, call)
        })
        .then(
          (response) => reply(null, response),
          (error: unknown) => reply(error instanceof Refusal ? error : handlerThrew()),
        )
    }

  const found = (options: Named | undefined): Group => {
    const identifier = options?.getStreamIdentifier()
    const name = { stream: identifier ? nameOf(identifier) : ALL, group: options?.getGroupName() ?? '' }
    const group = registry.find(name.stream, name.group)
    if (!group) throw groupMissing(name)
    return group
  }

  return {
    read: join(node, registry),
    create: once((request: groups.CreateReq) => {
      const definition = definitionOf(request.getOptions() ?? new groups.CreateReq.Options())
      if (registry.find(definition.stream, definition.group)) throw groupExists(definition)
      registry.create(definition)
      return new groups.CreateResp()
    }),
    update: once((request: groups.UpdateReq) => {
      const definition = definitionOf(request.getOptions() ?? new groups.UpdateReq.Options())
      const group = registry.find(definition.stream, definition.group)
      if (!group) throw groupMissing(definition)
      registry.update(group, definition)
      return new groups.UpdateResp()
    }),
    delete: once((request: groups.DeleteReq) => {
      registry.delete(found(request.getOptions()))
      return new groups.DeleteResp()
    }),
    getInfo: once((request: groups.GetInfoReq) =>
      new groups.GetInfoResp().setSubscriptionInfo(infoOf(node.log, found(request.getOptions()))),
    ),
    replayParked: once((request: groups.ReplayParkedReq) => {
      const options = request.getOptions()
      found(options).replay(options?.hasStopAt() ? Number(options.getStopAt()) : Infinity)
      return new groups.ReplayParkedResp()
    }),
    list: once((request: groups.ListReq) => {
      const of = request.getOptions()?.getListForStream()
      const stream = of && (of.getStream() ? nameOf(of.getStream()) : ALL)
      const listed = registry.list(stream)
      if (stream !== undefined && listed.length === 0) throw groupMissing({ stream, group: '' })
      return new groups.ListResp().setSubscriptionsList(listed.map((group) => infoOf(node.log, group)))
    }),
    restartSubsystem: once(() => {
      registry.close()
      return new shared.Empty()
    }),
  }
}
