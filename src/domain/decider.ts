import { AppError } from '../errors.ts'
import type { Recorded } from '../events/event.ts'
import type { DomainEvent } from '../events/index.ts'

/** The part of an event that a decider folds, which is known before the event is stored. */
export type Folded<Event extends DomainEvent = DomainEvent> = Pick<
  Recorded<Event>,
  'event' | 'revision' | 'metadata'
>

/**
 * The rules of one kind of stream: no clock, no new ids, no I/O. `decide` returns the facts that follow from a command;
 * none if it was already carried out. It throws an `AppError` to refuse the command, and never changes the state.
 */
export interface Decider<State, Command, Event extends DomainEvent = DomainEvent> {
  initial(): State
  decide(command: Command, state: State): Event[]
  /**
   * Returns the state after a fact. It may change and return the state it was given: the handler owns it.
   * A decider declares its own facts (`Folded<Event>`), handles each of them and refuses every other (`foreign`).
   */
  evolve(state: State, folded: Folded): State
  /**
   * The id of a fact, if the command determines it: a repeat by any node then appends the same bytes. Without it, the
   * fact gets a random id.
   */
  idOf?(event: Event): string | undefined
  /** Returns a state that stays as it is when facts are folded into the given one. */
  copyOf?(state: State): State
  /** The number of entries of a state that can have many: it bounds the memory of states. */
  sizeOf?(state: State): number
}

/** Refuses a fact of another kind of stream. It compiles only where every fact of the decider is handled. */
export const foreign = (_unhandled: never): never => {
  throw new AppError('internal_server_error', 'a fact of this type does not belong in this stream')
}
