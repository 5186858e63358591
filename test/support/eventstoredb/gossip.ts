import { randomUUID } from 'node:crypto'
import type { handleUnaryCall } from '@grpc/grpc-js'
import { createUUID } from '@eventstore/db-client/dist/utils/grpcUUID.js'
import gossip from '@eventstore/db-client/generated/gossip_pb.js'
import type shared from '@eventstore/db-client/generated/shared_pb.js'
import { clock } from '../../../src/clock.ts'
import type { Node } from './node.ts'

const { VNodeState } = gossip.MemberInfo

/** Reports this node and, if it is a follower, its leader. */
export const readGossip =
  ({ misbehaviour, port }: Node): handleUnaryCall<shared.Empty, gossip.ClusterInfo> =>
  (_, reply) => {
    const answer = () => {
      const { leader } = misbehaviour
      const info = new gossip.ClusterInfo()
      info.addMembers(memberOf(port, leader ? VNodeState.FOLLOWER : VNodeState.LEADER))
      if (leader) info.addMembers(memberOf(leader.port, VNodeState.LEADER))
      reply(null, info)
    }
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
