import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { Server, ServerCredentials } from '@grpc/grpc-js'
import gossipGrpc from '@eventstore/db-client/generated/gossip_grpc_pb.js'
import groupsGrpc from '@eventstore/db-client/generated/persistent_grpc_pb.js'
import featuresGrpc from '@eventstore/db-client/generated/serverfeatures_grpc_pb.js'
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js'
import { resetSocket } from '../resetSocket.ts'
import { authenticating, type Login } from './authenticating.ts'
import { features } from './features.ts'
import { readGossip } from './gossip.ts'
import { groupsService } from './groups/service.ts'
import type { Log } from './log.ts'
import type { Misbehaviour } from './misbehaviour.ts'
import type { Node } from './node.ts'
import { streamsService } from './streams.ts'

/** The largest message that the server accepts. */
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024

/** A running node, from its start until it is killed. */
export interface Running {
  readonly port: number
  /** Resets every connection and stops listening, as kill -9 does. */
  kill(): Promise<void>
}

/** The identity of a secured node, and the only user that it accepts. */
export interface Security {
  readonly key: Buffer
  readonly cert: Buffer
  readonly login: Login
  /** The authority whose certificates clients must have; none by default. */
  readonly clientsOf?: Buffer
}

/** Port 0 is any free one. */
export const run = async (
  log: Log,
  misbehaviour: Misbehaviour,
  asked: number,
  security?: Security,
): Promise<Running> => {
  const killed = new AbortController()
  const sockets = new Map<string, Socket>()
  const server = new Server({
    'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
    'grpc.max_send_message_length': -1,
    ...(security && { interceptors: [authenticating(security.login)] }),
  })
  const injector = server.createConnectionInjector(
    security
      ? ServerCredentials.createSsl(
          security.clientsOf ?? null,
          [{ private_key: security.key, cert_chain: security.cert }],
          security.clientsOf !== undefined,
        )
      : ServerCredentials.createInsecure(),
  )
  const listener = createServer({ noDelay: true }, (socket) => {
    const peer = `${socket.remoteAddress}:${socket.remotePort}`
    sockets.set(peer, socket)
    socket.on('close', () => sockets.delete(peer))
    socket.on('error', () => {}) // 'close' follows
    injector.injectConnection(socket)
  })
  listener.listen(asked, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as AddressInfo

  const node: Node = {
    log,
    misbehaviour,
    port,
    killed: killed.signal,
    reset: (peer) => {
      const socket = sockets.get(peer)
      if (socket) resetSocket(socket)
    },
  }
  server.addService(streamsGrpc.StreamsService, streamsService(node))
  server.addService(groupsGrpc.PersistentSubscriptionsService, groupsService(node))
  server.addService(featuresGrpc.ServerFeaturesService, { getSupportedMethods: features(node) })
  server.addService(gossipGrpc.GossipService, { read: readGossip(node) })

  const kill = async (): Promise<void> => {
    if (killed.signal.aborted) return
    killed.abort()
    const closed = once(listener.close(), 'close')
    for (const socket of sockets.values()) resetSocket(socket)
    await closed
    injector.destroy()
    server.forceShutdown()
  }
  return { port, kill }
}
