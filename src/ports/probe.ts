/** The answer of an engine to a connection that was opened for this question only. */
export interface Probed {
  /** For messages: without user and password. */
  readonly place: string
  /** The time on the clock of the engine; null if it does not report it. */
  readonly clock: EngineTime | null
}

export interface EngineTime {
  /** Milliseconds since 1970. */
  readonly time: number
  /** The engine reports the beginning of a period of this length, milliseconds. */
  readonly resolutionMs: number
}
