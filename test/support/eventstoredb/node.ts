import type { Metadata } from '@grpc/grpc-js'
import type { Log } from './log.ts'
import type { Misbehaviour, Service } from './misbehaviour.ts'
import { notReady, type Refusal } from './refusals.ts'

/** What the services of one node share. */
export interface Node {
  readonly log: Log
  readonly misbehaviour: Misbehaviour
  readonly port: number
  /** Aborted when the node is killed: nothing of it may go on. */
  readonly killed: AbortSignal
  /** Resets the connection that a call came by. */
  reset(peer: string): void
}

/** Waits as long as the service is silent; resolves with the refusal when the node does not take the call. */
export const admitted = async (
  { misbehaviour, killed }: Node,
  service: Service,
  asked?: Metadata,
): Promise<Refusal | undefined> => {
  await misbehaviour.silenceOf(service)
  if (killed.aborted) return notReady() // it was silent until it died
  return misbehaviour.refusalOf(service, asked)
}
