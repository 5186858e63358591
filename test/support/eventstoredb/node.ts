import type { Metadata } from '@grpc/grpc-js'
import type { Log } from './log.ts'
import type { Call, Misbehaviour, Service } from './misbehaviour.ts'
import { notReady, type Refusal } from './refusals.ts'

/** The shared state of the services of one node. */
export interface Node {
  readonly log: Log
  readonly misbehaviour: Misbehaviour
  readonly port: number
  /** Aborts when the node is killed: all its work must end. */
  readonly killed: AbortSignal
  /** Resets the connection of a call. */
  reset(peer: string): void
}

/** Waits while the service is silent. Resolves with an error if the node refuses the call. */
export const admitted = async (
  { misbehaviour, killed }: Node,
  service: Service,
  asked?: Metadata,
): Promise<Refusal | undefined> => {
  await misbehaviour.silenceOf(service)
  if (killed.aborted) return notReady() // the node was killed while it was silent
  return misbehaviour.refusalOf(service, asked)
}

/** Lets a call that arrives now fail if a test asked for it. Returns whether it did. */
export const failsNow = (
  { misbehaviour }: Node,
  kind: Call,
  { end, refuse }: { end?: () => void; refuse: (refusal: Refusal) => void },
): boolean => {
  const fault = misbehaviour.callFault(kind)
  if (fault === 'ended' && end) end()
  else if (fault !== undefined && fault !== 'unanswered') refuse(notReady())
  return fault !== undefined
}
