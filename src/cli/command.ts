import type { Client } from '../client/index.ts'
import type { Operator } from './operator.ts'
import type { Progress } from './progress.ts'
import type { Column } from './table.ts'
import type { Paint } from './terminal.ts'

/** Converts the text of a value. Throws a `WrongUsage` that names what is expected. */
type Parse<T> = (text: string) => T

export interface Argument {
  readonly description: string
  /** Default: exactly one. `any` is none or more, `some` is one or more; both only as the last argument. */
  readonly count?: 'optional' | 'any' | 'some'
  readonly parse?: Parse<unknown>
  /** An empty text is a value too. */
  readonly mayBeEmpty?: true
}

export interface Option {
  /** A second spelling of one letter, such as `f` for `-f`. */
  readonly short?: string
  /** The name of the value in the help, such as `FILE`; absent for a switch. */
  readonly value?: string
  readonly description: string
  /** Whether the option can be given several times. */
  readonly repeated?: true
  /** The command is refused without this option. */
  readonly required?: true
  readonly parse?: Parse<unknown>
  /** An empty text is a value too. */
  readonly mayBeEmpty?: true
}

type Parsed<S> = S extends { readonly parse: Parse<infer T> } ? T : string

type ArgumentValue<A> = A extends { readonly count: 'optional' }
  ? Parsed<A> | undefined
  : A extends { readonly count: 'any' | 'some' }
    ? readonly Parsed<A>[]
    : Parsed<A>

type OptionValue<O> = O extends { readonly value: string }
  ? O extends { readonly repeated: true }
    ? readonly Parsed<O>[]
    : O extends { readonly required: true }
      ? Parsed<O>
      : Parsed<O> | undefined
  : boolean

/** What a command prints: JSON for programs, and a text that ends with a line break for people. */
export interface Printed {
  readonly json: unknown
  readonly text: string
}

/** The result of a command. */
export interface Result extends Printed {
  /** The result is printed, and the exit code is 1: a check has failed. */
  readonly failed?: boolean
}

/** A command that has printed its lines already, and has failed. */
export interface Failed {
  readonly failed: boolean
}

/** One invocation of a command, with everything that its code needs. */
export interface Invocation<A = unknown, O = unknown> {
  readonly args: A
  readonly options: O
  /** Aborts at Ctrl-C and SIGTERM. A command that follows something then ends as done. */
  readonly signal: AbortSignal
  /** The value of `--profile`. */
  readonly profile: string | undefined
  /** The API of the operator. */
  readonly operator: () => Operator
  /** The API of the environment of the folder (`connectionHere`). */
  readonly client: () => Client
  /** As `client`, but each request is sent once. */
  readonly environment: () => Client
  /** The URL of that service, which needs no key. */
  readonly url: () => string
  /** The project of the folder; null if nothing names one. */
  readonly folderProject: () => string | null
  /** Reads the standard input to its end. */
  readonly input: () => Promise<string>
  /** Reads a secret: typed without an echo at a terminal, else the standard input without its last line break. */
  readonly secret: (question: string) => Promise<string>
  /** Colours a text on a terminal. */
  readonly paint: Paint
  /** Prints one line before the result, for commands that follow something. Wait for it, because the reader may be slow. */
  readonly print: (line: Printed) => Promise<void>
  /** A table that fits the terminal. */
  readonly table: <Row>(rows: readonly Row[], columns: readonly Column<Row>[]) => string
  /** Shows a progress bar on a terminal, and nothing elsewhere. `unit` is a plural, such as `events`. */
  readonly progress: (unit: string) => Progress
  /** Shows on a terminal for how long something is awaited. */
  readonly waiting: (label: string) => void
  /** Opens a URL in the browser of a person at a terminal; elsewhere and with `--json`, nothing opens. */
  readonly browse: (url: string) => void
  /** Continues if the operator answers yes or has given `--yes`; else rejects. For commands with `confirms` only. */
  readonly confirm: (question: string) => Promise<void>
}

interface Spec<Arguments, Options, Run> {
  /** `svc <group> <name>`; absent: `svc <name>`. */
  readonly group?: string
  readonly name: string
  /** `svc <group>` without the name of a command runs this one. */
  readonly isDefault?: true
  readonly summary: string
  /** Explains the command in full sentences. */
  readonly description: string
  readonly arguments?: Arguments
  /** The options in addition to `--json` and `--help`. */
  readonly options?: Options
  readonly examples: readonly string[]
  /**
   * The command destroys something: it has the option `--yes`, and is refused without it where there is no terminal.
   * `sometimes`: that depends on what the command finds, and only then is it refused.
   */
  readonly confirms?: true | 'sometimes'
  /** The command reaches an environment: it has the option `--profile`. */
  readonly ofEnvironment?: true
  readonly run: Run
}

/** A command of `svc`. The command line, its checks and its help are derived from these declarations. */
export type CliCommand = Spec<
  Readonly<Record<string, Argument>>,
  Readonly<Record<string, Option>>,
  (invocation: Invocation) => Promise<Result | Failed | void>
>

/** Declares a command. The values that `run` gets have the types of the declared arguments and options. */
export const command = <
  const Arguments extends Readonly<Record<string, Argument>> = Readonly<Record<never, Argument>>,
  const Options extends Readonly<Record<string, Option>> = Readonly<Record<never, Option>>,
>(
  spec: Spec<
    Arguments,
    Options,
    (
      invocation: Invocation<
        { readonly [Name in keyof Arguments]: ArgumentValue<Arguments[Name]> },
        { readonly [Name in keyof Options]: OptionValue<Options[Name]> }
      >,
    ) => Promise<Result | Failed | void>
  >,
): CliCommand => ({ ...spec, run: spec.run as CliCommand['run'] })
