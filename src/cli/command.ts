import type { ParseArgsOptionsConfig } from 'node:util'
import { AppError } from '../errors.ts'

/** Where a command writes: its result, and everything else. */
export interface Output {
  readonly out: (text: string) => void
  readonly err: (text: string) => void
  /** Whether `err` is a terminal, so that a line of progress can be replaced. */
  readonly isTerminal: boolean
}

/** The values of a command's options, by name. */
export type Options = Readonly<Record<string, string | boolean | undefined>>

export interface CliCommand {
  /** `svc <group> <name>` */
  readonly group: string
  readonly name: string
  readonly summary: string
  /** Explains the command in full sentences. */
  readonly description: string
  /** A description for each option in addition to `--json` and `--help`. */
  readonly options: Readonly<Record<string, { readonly value?: string; readonly description: string }>>
  readonly examples: readonly string[]
  /** Resolves with the result as JSON and as a text for people. */
  readonly run: (
    options: Options,
    output: Output,
  ) => Promise<{ readonly json: unknown; readonly text: string }>
}

/** An invocation that no command understands: exit code 2. */
export class WrongUsage extends AppError {
  constructor(message: string) {
    super('bad_request', message)
  }
}

export const parseOptionsOf = ({ options }: CliCommand): ParseArgsOptionsConfig => ({
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  ...Object.fromEntries(
    Object.entries(options).map(([name, { value }]) => [
      name,
      { type: value === undefined ? 'boolean' : 'string' },
    ]),
  ),
})
