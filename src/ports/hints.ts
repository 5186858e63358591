/**
 * The topics of hints. `wanted`: a reader waits for a read model. `reached`: a read model is at a cursor. `revoked`: a
 * credential is no longer valid. `room`: a worker has room or not. `offered`: a run for one worker.
 */
export const HINT_TOPICS = ['wanted', 'reached', 'revoked', 'room', 'offered'] as const
export type HintTopic = (typeof HINT_TOPICS)[number]

/** Messages between nodes that save waiting. A lost hint costs latency, never correctness. Adapters: in-process, Redis. */
export interface Hints {
  /** Sends a hint to every node, including this one. Never throws, never waits. */
  publish(topic: HintTopic, text: string): void
  /** Calls back with every hint of the topic; returns a function that unsubscribes. */
  on(topic: HintTopic, listener: (text: string) => void): () => void
  /** False while hints may not reach other nodes. */
  readonly connected: boolean
  close(): Promise<void>
}
