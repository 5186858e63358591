import type groups from '@eventstore/db-client/generated/persistent_pb.js'
import type { ServerDuplexStream } from '@grpc/grpc-js'

export type GroupCall = ServerDuplexStream<groups.ReadReq, groups.ReadResp>

/** One client of a group. */
export interface Consumer {
  readonly call: GroupCall
  /** The number of events that it accepts without an acknowledgement. */
  readonly bufferSize: number
  inFlight: number
  total: number
}

export const hasRoom = ({ inFlight, bufferSize }: Consumer): boolean => inFlight < bufferSize
