/**
 * What nodes tell each other: `wanted` somebody waits for a read model, `reached` one has come to a cursor, `revoked` a
 * credential no longer holds, `room` a worker has some or has none, `offered` a run to one worker.
 */
export const HINT_TOPICS = ['wanted', 'reached', 'revoked', 'room', 'offered'] as const
export type HintTopic = (typeof HINT_TOPICS)[number]

/** Notices between nodes that save waiting. One that gets lost costs latency, never truth. Adapters: in-process, Redis. */
export interface Hints {
  /** To every node, this one too. Never throws, never waits. */
  publish(topic: HintTopic, text: string): void
  /** Calls back with every notice of the topic; returns what ends it. */
  on(topic: HintTopic, listener: (text: string) => void): () => void
  /** False while notices may reach no other node. */
  readonly connected: boolean
  close(): Promise<void>
}
