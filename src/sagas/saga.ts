/** What a saga decides to do, as data. Keys name its work: a run, a schedule, a domain. */
export type Step<Input, Command> =
  /** Carries out a command, unless one of the same key is under way. */
  | { readonly do: 'carryOut'; readonly key: string; readonly command: Command }
  /** Sets or moves the alarm of a key: the input comes in at `at`, milliseconds since 1970. */
  | { readonly do: 'setAlarm'; readonly key: string; readonly at: number; readonly input: Input }
  /** Clears the alarm of a key. A command of the key is not attempted again, and its outcome is ignored. */
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
 * A reaction to what happens: what comes in, what the core decides, and how that is carried out. Any number of nodes may
 * run a saga at once, so each command must be one that happens once however often it is carried out.
 */
export interface Saga<State = unknown, Input = unknown, Command = unknown> extends SagaCore<
  State,
  Input,
  Command
> {
  readonly name: string
  /** Yields what the read models hold, then what happens. It ends when the signal aborts. */
  inputs(signal: AbortSignal): AsyncIterable<Input>
  /** Resolves with what the core must learn of the outcome. A rejection that is retryable leads to another attempt. */
  carryOut(command: Command): Promise<Input | undefined>
  /** What the core must learn of a command that failed for good; the failure is in the log already. */
  afterFailure?(command: Command): Input | undefined
}
