import type fc from 'fast-check'
import type { ErrorCode } from '../../src/errors.ts'
import type { ModelNode, World } from './world.ts'

/** The answer to a command: its value, or the code of its refusal. */
export type Reply = { readonly ok: unknown } | { readonly refused: ErrorCode }

/** A refusal by the model. */
export class Refusal extends Error {
  readonly code: ErrorCode

  constructor(code: ErrorCode) {
    super(code)
    this.code = code
  }
}

export const refuse = (code: ErrorCode): never => {
  throw new Refusal(code)
}

/** The differences from the model that commands of the same moment may cause. Each subject explains its own. */
export interface Excuse<State> {
  /** A refusal with one of these codes is allowed, whether the command took effect or not. */
  readonly refused?: readonly ErrorCode[]
  /** The changes that such a refusal may leave behind. */
  readonly leaves?: readonly ((state: State) => void)[]
  /** The command may be accepted without effect. */
  readonly idle?: boolean
}

/**
 * A part of the command surface with a model of its own. Parts have no state in common, so a history is right if the
 * history of each part is. The model is independent of the deciders: it imports nothing from `src/domain`.
 */
export interface Subject<State, Command> {
  readonly name: string
  readonly commands: fc.Arbitrary<Command>
  /** Gives a command the name of what it creates, and those that commands of earlier moments created. */
  named?(command: Command, own: string, earlier: readonly Command[]): Command
  readonly initial: State
  /** The model: changes the state and returns the value of the reply, or refuses. */
  step(state: State, command: Command): unknown
  /** Everything in the state that can be read from the service. */
  view(state: State): unknown
  /** Commands that may be repeated with the same ids after their node died. */
  repeats(command: Command): boolean
  /** The allowed differences of a command because of another one of the same moment. */
  excuse(command: Command, other: Command): Excuse<State>
  /** Begins a scenario in an environment of its own. */
  open(world: World): Promise<Scenario<Command>>
}

/** The service, as a scenario uses it. */
export interface Scenario<Command> {
  perform(node: ModelNode, command: Command): Promise<unknown>
  /** Reads from the service what `view` returns for the model. */
  observe(node: ModelNode): Promise<unknown>
}
