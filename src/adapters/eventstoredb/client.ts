import type { CallOptions, Channel, Client as GrpcClient, Metadata } from '@grpc/grpc-js'
import { EventStoreDBClient } from '@eventstore/db-client'
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js'
import { AppError, messageOf } from '../../errors.ts'
import { newId } from '../../ids.ts'
import { atMost } from '../../loops/deadline.ts'
import type { Address } from './address.ts'
import { silent } from './failures.ts'
import { withSecureChannels } from './secureChannels.ts'

/** Private methods of the client, which calls over the generated stubs need. */
interface Inner {
  execute<S extends GrpcClient, T>(
    client: new (address: string, credentials: never) => S,
    name: string,
    action: (rpc: S) => Promise<T>,
  ): Promise<T>
  callArguments(options: { requiresLeader?: boolean }, call?: CallOptions): [Metadata, CallOptions]
  readonly capabilities: Promise<ServerFeatures>
}

export interface ServerFeatures {
  readonly serverVersion: string
  supports(method: { readonly path: string }): boolean
}

/** Private methods that the client calls on itself. */
interface Hooks {
  createChannel: () => Promise<Channel>
  supports: (method: object, feature?: string) => Promise<boolean>
  handleError: (rpc: GrpcClient, error: Error) => Promise<void>
}

export interface OpenClient {
  readonly client: EventStoreDBClient
  readonly inner: Inner
  /** Cancels all calls and closes the channel. Never rejects. */
  close(): Promise<void>
}

/** `dispose` of the client can hang for minutes. */
const DISPOSE_MS = 2000

/**
 * Opens a client. None of the promises that it creates on its own is ever without a handler, because such a rejection
 * would end the process:
 * H1: after a failed call the client waits for its current channel and ignores the result, also the failure.
 * H2: calls about groups do not wait for the features of the server, which are checked at the start. The client would keep
 * a question about them that failed or was never answered, for all later calls.
 * H3: an append is a call of its own. The batch append of the client has no deadline (docs/decisions/0010).
 * H4: closing looks at no promise of the client. A channel that is found later is closed at once.
 *
 * `onConnected` gets the error of each TLS connection, or undefined when one succeeds. Throws `bad_request` for an
 * address that cannot work.
 */
export const openClient = (address: Address, onConnected: (error: unknown) => void): OpenClient => {
  const client = clientOf(address, onConnected)
  const hooks = client as unknown as Hooks
  const { createChannel, handleError } = hooks
  let isClosed = false
  let channel: Channel | undefined
  hooks.handleError = (rpc, error) => handleError(rpc, error).catch(() => {}) // H1
  hooks.supports = (method) => Promise.resolve(method !== streamsGrpc.StreamsService.batchAppend) // H2, H3
  hooks.createChannel = async () => {
    if (isClosed) throw silent()
    channel = await createChannel()
    if (isClosed) channel.close() // H4
    return channel
  }
  return {
    client,
    inner: client as unknown as Inner,
    close: async () => {
      isClosed = true
      await atMost(DISPOSE_MS, client.dispose()).catch(() => {})
      channel?.close()
    },
  }
}

/** Each client has a name of its own, by which the server lists the consumers of a group. */
const clientOf = (
  { connectionString, connectionName }: Address,
  onConnected: (error: unknown) => void,
): EventStoreDBClient => {
  const named = `${connectionString}&connectionName=${connectionName}-${newId().slice(-12)}`
  try {
    return withSecureChannels(onConnected, () => EventStoreDBClient.connectionString(named))
  } catch (error) {
    throw new AppError('bad_request', messageOf(error), { cause: error })
  }
}
