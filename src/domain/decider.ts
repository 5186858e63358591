import type { Recorded } from '../events/event.ts'
import type { DomainEvent } from '../events/index.ts'

/** The part of an event that a decider folds, which is known before the event is stored. */
export type Folded = Pick<Recorded, 'event' | 'revision' | 'metadata'>

/**
 * The rules of one kind of stream as pure functions: no clock, no new ids, no I/O. `decide` returns the facts that follow
 * from a command (none if it was already carried out) or throws an `AppError` to refuse it. `evolve` may
 * change and return the state it was given: the shell owns it and drops it when an append fails.
 */
export interface Decider<State, Command, Event extends DomainEvent = DomainEvent> {
  initial(): State
  decide(command: Command, state: State): Event[]
  evolve(state: State, folded: Folded): State
  /**
   * The id of a fact, where the command determines it: then a repeat of the command, by any node, appends the same bytes.
   * Undefined, as without this function: the fact gets a random id.
   */
  idOf?(event: Event): string | undefined
}
