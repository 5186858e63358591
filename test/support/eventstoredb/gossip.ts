import { randomUUID } from 'node:crypto'
import type { handleUnaryCall } from '@grpc/grpc-js'
import { createUUID } from '@eventstore/db-client/dist/utils/grpcUUID.js'
import gossip from '@eventstore/db-client/generated/gossip_pb.js'
import type shared from '@eventstore/db-client/generated/shared_pb.js'
import { clock } from '../../../src/clock.ts'
import { failsNow, type Node } from './node.ts'

const { VNodeState } = gossip.MemberInfo

/** Reports this node and, if it is a follower, its leader. */
export const readGossip =
  (node: Node): handleUnaryCall<shared.Empty, gossip.ClusterInfo> =>
  (_, reply) => {
    const { misbehaviour, port } = node
    const answer = () => {
      const { leader, isElecting } = misbehaviour
      const info = new gossip.ClusterInfo()
      if (isElecting) return reply(null, info.setMembersList([memberOf(port, VNodeState.UNKNOWN)]))
      info.addMembers(memberOf(port, leader ? VNodeState.FOLLOWER : VNodeState.LEADER))
      if (leader) info.addMembers(memberOf(leader.port, VNodeState.LEADER))
      reply(null, info)
    }
    if (failsNow(node, 'gossip', { refuse: reply })) return
    const silence = misbehaviour.silenceOf('gossip')
    if (silence) void silence.then(answer)
    else answer()
  }

const memberOf = (port: number, state: gossip.MemberInfo.VNodeState): gossip.MemberInfo => {
  const member = new gossip.MemberInfo()
  const endPoint = new gossip.EndPoint()
  endPoint.setAddress('127.0.0.1')
  endPoint.setPort(port)
  member.setInstanceId(createUUID(randomUUID()))
  member.setTimeStamp(String(BigInt(clock.now()) * 10_000n))
  member.setState(state)
  member.setIsAlive(true)
  member.setHttpEndPoint(endPoint)
  return member
}
