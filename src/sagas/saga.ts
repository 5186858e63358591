/** A decision of a saga, as data. A key identifies a piece of work: a run, a schedule or a domain. */
export type Step<Input, Command> =
  /** Carries out a command, unless one with the same key is in progress. */
  | { readonly do: 'carryOut'; readonly key: string; readonly command: Command }
  /** Sets or moves the alarm of a key: the core receives the input at `at`, milliseconds since 1970. */
  | { readonly do: 'setAlarm'; readonly key: string; readonly at: number; readonly input: Input }
  /** Clears the alarm of a key. A command of the key is not retried, and its outcome is ignored. */
  | { readonly do: 'drop'; readonly key: string }

export interface Reaction<State, Input, Command> {
  readonly state: State
  readonly steps: readonly Step<Input, Command>[]
}

/** The pure core of a saga: the rules, without clock, I/O or ids. */
export interface SagaCore<State, Input, Command> {
  readonly initial: State
  /** `now`: milliseconds since 1970. */
  react(state: State, input: Input, now: number): Reaction<State, Input, Command>
}

/**
 * A saga: its inputs, the decisions of its core, and their execution. Several nodes may run a saga at once, so each
 * command must be idempotent.
 */
export interface Saga<State = unknown, Input = unknown, Command = unknown> extends SagaCore<
  State,
  Input,
  Command
> {
  readonly name: string
  /** Yields the state in the read models, then further activity. It ends when the signal aborts. */
  inputs(signal: AbortSignal): AsyncIterable<Input>
  /**
   * Resolves with the input for the core, if any. A command that rejects with a retryable error is retried. `signal` aborts when
   * the saga ends, which ignores the outcome.
   */
  carryOut(command: Command, signal: AbortSignal): Promise<Input | undefined>
  /** Returns the input for the core after a command failed without retry. The failure is already logged. */
  afterFailure?(command: Command): Input | undefined
}
