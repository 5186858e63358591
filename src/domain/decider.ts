import type { Recorded } from '../events/event.ts'
import type { DomainEvent } from '../events/index.ts'

/** What a decider sees of an event when it folds it: also of one that is on its way to the log. */
export type Folded = Pick<Recorded, 'event' | 'revision' | 'metadata'>

/**
 * The rules of one kind of stream, pure: no clock, no ids of its own, no I/O. `decide` answers a command
 * with the facts it makes true (none: already so) or throws an `AppError` to refuse it. `evolve` may
 * change and return the state it was given: the shell owns it and drops it when an append fails.
 */
export interface Decider<State, Command, Event extends DomainEvent = DomainEvent> {
  initial(): State
  decide(command: Command, state: State): Event[]
  evolve(state: State, folded: Folded): State
}
