import { randomUUID } from 'node:crypto'
import type { handleUnaryCall } from '@grpc/grpc-js'
import { createUUID } from '@eventstore/db-client/dist/utils/grpcUUID.js'
import gossip from '@eventstore/db-client/generated/gossip_pb.js'
import type shared from '@eventstore/db-client/generated/shared_pb.js'
import { clock } from '../../../src/clock.ts'
import type { Node } from './node.ts'

/** Which nodes there are; the enumeration of states has no values at run time. */
const STATES = { follower: 6, leader: 8 }

/** Tells of this node and, while it follows, of its leader. */
export const readGossip =
  ({ misbehaviour, port }: Node): handleUnaryCall<shared.Empty, gossip.ClusterInfo> =>
  (_, reply) => {
    const answer = () => {
      const { leader } = misbehaviour
      const info = new gossip.ClusterInfo()
      info.addMembers(memberOf(port, leader ? 'follower' : 'leader'))
      if (leader) info.addMembers(memberOf(leader.port, 'leader'))
      reply(null, info)
    }
    const silence = misbehaviour.silenceOf('gossip')
    if (silence) void silence.then(answer)
    else answer()
  }

const memberOf = (port: number, state: keyof typeof STATES): gossip.MemberInfo => {
  const member = new gossip.MemberInfo()
  const endPoint = new gossip.EndPoint()
  endPoint.setAddress('127.0.0.1')
  endPoint.setPort(port)
  member.setInstanceId(createUUID(randomUUID()))
  member.setTimeStamp(String(BigInt(clock.now()) * 10_000n))
  member.setState(STATES[state] as never)
  member.setIsAlive(true)
  member.setHttpEndPoint(endPoint)
  return member
}
