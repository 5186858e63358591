import { randomUUID } from 'node:crypto'
import { BoundedMap } from '../boundedMap.ts'
import { AppError, isAppError } from '../errors.ts'
import type { Cursor, NewEvent } from '../events/event.ts'
import type { DomainEvent } from '../events/index.ts'
import type { EventStore, Expected } from '../ports/eventStore.ts'
import type { Cause, Decider } from './decider.ts'

/** What a command led to: its own facts (none when it was already so) and where they stand. */
export interface Handled<Event extends DomainEvent = DomainEvent> {
  readonly events: readonly Event[]
  /** Revision of the first of the facts, or the next one's when there are none. */
  readonly firstRevision: number
  /** Cursor of the append that held them; null when nothing had to be appended. */
  readonly cursor: Cursor | null
}

interface Waiting<Command, Event extends DomainEvent> {
  readonly command: Command
  readonly cause: Cause
  readonly resolve: (handled: Handled<Event>) => void
  readonly reject: (error: unknown) => void
}

interface Loaded<State> {
  state: State
  /** Revision of the last event folded; -1 for none. */
  revision: number
}

interface Actor<State, Command, Event extends DomainEvent> {
  loaded: Loaded<State> | undefined
  waiting: Waiting<Command, Event>[]
  running: Promise<void> | undefined
}

/** Commands of one stream that lost this many races in a row are told to come back. */
const MAX_CONFLICTS = 20
const CACHED_STREAMS = 4096

/** Commands that share an append: with 64 KiB of payload each they stay under EventStoreDB's 1 MiB. */
const COMMANDS_PER_APPEND = 12

/**
 * The write side in one sentence: read, fold, decide, append at the revision that was read; after a
 * conflict, again. Commands of one stream wait for each other, and those that waited share one append.
 */
export class CommandHandler<State, Command, Event extends DomainEvent> {
  readonly #store: EventStore
  readonly #decider: Decider<State, Command, Event>
  readonly #busy = new Map<string, Actor<State, Command, Event>>()
  readonly #loaded = new BoundedMap<string, Loaded<State>>(CACHED_STREAMS)

  constructor(store: EventStore, decider: Decider<State, Command, Event>) {
    this.#store = store
    this.#decider = decider
  }

  /**
   * Durable when it resolves (I1). Rejects with the decider's refusal, with `unavailable`, or with
   * `conflict` when others kept winning. `fresh`: the stream was just made up, so there is nothing to read.
   */
  handle(stream: string, command: Command, cause: Cause, { fresh = false } = {}): Promise<Handled<Event>> {
    return new Promise((resolve, reject) => {
      let actor = this.#busy.get(stream)
      if (!actor) {
        actor = { loaded: this.#loaded.get(stream), waiting: [], running: undefined }
        if (fresh) actor.loaded ??= { state: this.#decider.initial(), revision: -1 }
        this.#busy.set(stream, actor)
      }
      actor.waiting.push({ command, cause, resolve, reject })
      actor.running ??= this.#run(stream, actor)
    })
  }

  /** The state of a stream as of now, with everything this node has appended. */
  async load(stream: string): Promise<Readonly<Loaded<State>>> {
    await this.#busy.get(stream)?.running
    const known = this.#loaded.get(stream)
    const loaded = await this.#catchUp(stream, known)
    if (!this.#busy.has(stream)) this.#loaded.set(stream, loaded)
    return loaded
  }

  async #run(stream: string, actor: Actor<State, Command, Event>): Promise<void> {
    let conflicts = 0
    while (actor.waiting.length > 0) {
      const waiting = actor.waiting.splice(0, COMMANDS_PER_APPEND)
      try {
        actor.loaded ??= await this.#catchUp(stream, undefined)
        await this.#decideAndAppend(stream, actor.loaded, waiting)
        conflicts = 0
      } catch (error) {
        actor.loaded = undefined // it may hold what was not stored
        this.#loaded.delete(stream)
        if (isAppError(error, 'wrong_revision') && ++conflicts < MAX_CONFLICTS) {
          actor.waiting.unshift(...waiting)
          continue
        }
        const refusal = isAppError(error, 'wrong_revision')
          ? new AppError('conflict', `Too many others are changing ${stream}`, { cause: error })
          : error
        for (const { reject } of waiting) reject(refusal)
      }
    }
    if (actor.loaded) this.#loaded.set(stream, actor.loaded)
    this.#busy.delete(stream)
    actor.running = undefined
  }

  async #decideAndAppend(stream: string, loaded: Loaded<State>, waiting: Waiting<Command, Event>[]): Promise<void> {
    const expected: Expected = loaded.revision < 0 ? 'none' : loaded.revision
    const appending: NewEvent[] = []
    const settled: ((cursor: Cursor | null) => void)[] = []
    for (const { command, cause, resolve, reject } of waiting) {
      const firstRevision = loaded.revision + 1
      let events: Event[]
      try {
        events = this.#decider.decide(command, loaded.state)
      } catch (error) {
        reject(error)
        continue
      }
      for (const event of events) {
        loaded.revision++
        loaded.state = this.#decider.evolve(loaded.state, { event, revision: loaded.revision, metadata: cause })
        appending.push({ id: idOf(event), event, metadata: cause })
      }
      settled.push((cursor) => resolve({ events, firstRevision, cursor: events.length > 0 ? cursor : null }))
    }
    const cursor = appending.length > 0 ? (await this.#store.append(stream, appending, expected)).cursor : null
    for (const settle of settled) settle(cursor)
  }

  async #catchUp(stream: string, known: Loaded<State> | undefined): Promise<Loaded<State>> {
    const loaded = known ?? { state: this.#decider.initial(), revision: -1 }
    for await (const recorded of this.#store.read(stream, { from: loaded.revision + 1 })) {
      loaded.state = this.#decider.evolve(loaded.state, recorded)
      loaded.revision = recorded.revision
    }
    return loaded
  }
}

/**
 * The id a fact is stored under. Facts that begin something take that thing's id, which the command
 * derived; so the same command sent again, by whatever node, repeats the same bytes.
 */
const idOf = (event: DomainEvent): string => {
  switch (event.type) {
    case 'StreamCreated':
      return event.stream_id
    case 'EventPublished':
      return event.event_id
    case 'RunStarted':
      return event.run_id
    default:
      return randomUUID()
  }
}
