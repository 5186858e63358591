import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { BoundedMap } from '../boundedMap.ts'
import { AppError, isAppError, messageOf, PermanentError } from '../errors.ts'
import type { Cause, Cursor, NewEvent, Recorded } from '../events/event.ts'
import type { DomainEvent } from '../events/index.ts'
import { unprocessable, versionOf } from '../events/upcast.ts'
import { jittered, pauseAfter } from '../loops/backoff.ts'
import type { EventStore } from '../ports/eventStore.ts'
import type { Decider, Folded } from './decider.ts'
import type { Immutable } from './immutable.ts'

/** Asked before a command is decided. Rejects to refuse it; null if nothing counts it. */
export type Admit<Command> = (command: Command, cause: Cause) => Promise<void> | null

/** The result of a command: its own facts and their positions. There are none if it was already carried out. */
export interface Handled<Event extends DomainEvent = DomainEvent> {
  readonly events: readonly Event[]
  /** The ids of the stored facts. */
  readonly ids: readonly string[]
  /** Revision of the first fact, or the next revision of the stream when there are none. */
  readonly firstRevision: number
  /** Cursor of their append; null when nothing was appended. */
  readonly cursor: Cursor | null
}

/** What a caller knows about the stream. */
interface Known {
  /** Its id is new, so nothing is read. */
  readonly fresh?: boolean
  /** Its first fact: reading starts after it. */
  readonly opening?: Folded | undefined
  /** It reaches at least this revision, so a shorter read is not trusted. */
  readonly known?: number
}

interface Waiting<Command, Event extends DomainEvent> {
  readonly command: Command
  readonly cause: Cause
  /** Revision of a fact that is known to be stored. */
  readonly known: number
  readonly resolve: (handled: Handled<Event>) => void
  readonly reject: (error: unknown) => void
}

interface Loaded<State> {
  state: State
  /** Revision of the last event folded; -1 for none. */
  revision: number
  /** A batch of its commands was not stored. The state before each further batch is kept, because the stream can be long. */
  isCopied?: true
}

interface Reading<State> {
  /** Reads from the state, in the same turn of the event loop. */
  readonly take: (loaded: Loaded<State>) => void
  readonly reject: (error: unknown) => void
}

interface Actor<State, Command, Event extends DomainEvent> {
  loaded: Loaded<State> | undefined
  waiting: Waiting<Command, Event>[]
  reading: Reading<State>[]
  running: Promise<void> | undefined
}

/** The number of lost races in a row after which a command is refused with `conflict`. */
const MAX_CONFLICTS = 20

/** From the second lost race in a row, a command waits first, so that it does not race the same winner again. */
const PAUSES = { firstMs: 2, longestMs: 16 }

const CACHED_STREAMS = 4096
/** Entries of the cached states of a decider with `sizeOf`: about 20 MB. */
const CACHED_ENTRIES = 32_768

/** The most commands in one append: with 64 KiB of payload each they stay under EventStoreDB's 1 MiB. */
const COMMANDS_PER_APPEND = 12

/**
 * The write side: reads a stream, folds it, decides, appends at the revision that was read, and starts again after a
 * conflict. Commands of one stream wait for each other; those that waited share one append.
 */
export class CommandHandler<State, Command, Event extends DomainEvent> {
  readonly #store: EventStore
  readonly #decider: Decider<State, Command, Event>
  readonly #onUnprocessable: (reason: string) => void
  readonly #admit: Admit<Command>
  readonly #busy = new Map<string, Actor<State, Command, Event>>()
  readonly #loaded: BoundedMap<string, Loaded<State>>

  /** `onUnprocessable` is called with a text that names a stored fact which cannot be folded. */
  constructor(
    store: EventStore,
    decider: Decider<State, Command, Event>,
    onUnprocessable: (reason: string) => void = () => {},
    admit: Admit<Command> = () => null,
  ) {
    this.#store = store
    this.#decider = decider
    this.#loaded = new BoundedMap(CACHED_STREAMS, decider.sizeOf ? CACHED_ENTRIES : Infinity)
    this.#onUnprocessable = onUnprocessable
    this.#admit = admit
  }

  /**
   * Durable when it resolves (I1). Rejects with the decider's refusal, with `unavailable`, or with `conflict` after too
   * many lost races.
   */
  handle(stream: string, command: Command, cause: Cause, reading: Known = {}): Promise<Handled<Event>> {
    const admitted = this.#admit(command, cause)
    if (!admitted) return this.#enter(stream, command, cause, reading)
    return admitted.then(() => this.#enter(stream, command, cause, reading))
  }

  #enter(
    stream: string,
    command: Command,
    cause: Cause,
    { fresh = false, opening, known = -1 }: Known,
  ): Promise<Handled<Event>> {
    return new Promise((resolve, reject) => {
      const actor = this.#actorOf(stream)
      if (fresh) actor.loaded ??= { state: this.#decider.initial(), revision: -1 }
      if (opening)
        actor.loaded ??= {
          state: this.#decider.evolve(this.#decider.initial(), opening),
          revision: opening.revision,
        }
      actor.waiting.push({ command, cause, known, resolve, reject })
      actor.running ??= this.#run(stream, actor)
    })
  }

  /**
   * Resolves with the result of `select` on the current state of a stream. Later commands change the state, so `select`
   * copies every map, set or array that it returns.
   */
  read<Selected>(
    stream: string,
    select: (state: Immutable<State>, revision: number) => Selected,
  ): Promise<Selected> {
    return new Promise((resolve, reject) => {
      const actor = this.#actorOf(stream)
      const take = ({ state, revision }: Loaded<State>): void =>
        resolve(Promise.try(select, state as Immutable<State>, revision))
      actor.reading.push({ take, reject })
      actor.running ??= this.#run(stream, actor)
    })
  }

  #actorOf(stream: string): Actor<State, Command, Event> {
    let actor = this.#busy.get(stream)
    if (!actor) {
      actor = { loaded: this.#loaded.get(stream), waiting: [], reading: [], running: undefined }
      this.#busy.set(stream, actor)
    }
    return actor
  }

  async #run(stream: string, actor: Actor<State, Command, Event>): Promise<void> {
    let conflicts = 0
    let reached = -1 // the revision of the stream, as a lost race reported it
    let most = COMMANDS_PER_APPEND
    while (actor.waiting.length > 0 || actor.reading.length > 0) {
      if (actor.reading.length > 0) await this.#read(stream, actor)
      if (actor.waiting.length === 0) continue
      const waiting = actor.waiting.splice(0, conflicts > 0 ? 1 : most)
      let before: Loaded<State> | undefined
      try {
        if (!actor.loaded || conflicts > 0) {
          actor.loaded = await this.#catchUp(stream, actor.loaded)
          if (actor.loaded.revision < reached && (await this.#store.isExpired(stream)))
            actor.loaded = { state: this.#decider.initial(), revision: reached }
        }
        if (conflicts > 0 || most === 1) actor.loaded.isCopied = true
        if (waiting.length > 1 && actor.loaded.isCopied) before = this.#copyOf(actor.loaded)
        await this.#answer(stream, actor.loaded, waiting)
        conflicts = 0
      } catch (error) {
        const lost = isAppError(error, 'wrong_revision')
        const { expected, actual } = revisionsIn(error)
        // After a change of its leader, a store may read less than it refused before: no other writer is the cause.
        const isOutage = expected < reached || actual < expected
        if (lost && actual >= 0) reached = actual
        const isTooLarge = waiting.length > 1 && isAppError(error, 'payload_too_large')
        // A state with facts that were not stored is dropped; a state that is only behind catches up.
        if (!lost || waiting.length > 1 || actual < expected) {
          actor.loaded = isTooLarge || (lost && !(actual < expected)) ? before : undefined
          this.#loaded.delete(stream)
        }
        if (isTooLarge) {
          most = 1 // together they are too large
          actor.waiting.unshift(...waiting)
          continue
        }
        if (lost && ++conflicts < MAX_CONFLICTS) {
          actor.waiting.unshift(...waiting)
          if (conflicts > 1) await delay(jittered(pauseAfter(conflicts - 2, PAUSES)))
          continue
        }
        const refusal = !lost ? error : isOutage ? fewerFacts(stream) : tooManyWriters(stream, error)
        conflicts = 0
        for (const { reject } of waiting) reject(refusal)
      }
    }
    if (actor.loaded) this.#loaded.set(stream, actor.loaded, this.#decider.sizeOf?.(actor.loaded.state))
    this.#busy.delete(stream)
    actor.running = undefined
  }

  /** Readers that asked before the read of the log began share it. */
  async #read(stream: string, actor: Actor<State, Command, Event>): Promise<void> {
    const reading = actor.reading.splice(0)
    try {
      const loaded = await this.#catchUp(stream, actor.loaded)
      actor.loaded = loaded
      for (const { take, reject } of reading) {
        try {
          take(loaded)
        } catch (error) {
          reject(error) // only this reader fails
        }
      }
    } catch (error) {
      actor.loaded = undefined
      for (const { reject } of reading) reject(error)
    }
  }

  /**
   * Ensures that no reply or refusal is based on an outdated state. An append at the expected revision proves that the
   * state was current and that its facts are stored; without an append, the store is asked.
   */
  async #answer(
    stream: string,
    loaded: Loaded<State>,
    waiting: readonly Waiting<Command, Event>[],
  ): Promise<void> {
    for (;;) {
      const { revision } = loaded
      const { facts, answers, fold } = this.#decide(loaded, waiting)
      let cursor: Cursor | null = null
      if (facts.length > 0)
        cursor = (await this.#store.append(stream, facts, revision < 0 ? 'none' : revision)).cursor
      else if ((await this.#catchUp(stream, loaded)).revision !== revision) continue
      else if (waiting.some(({ known }) => known > revision) && !(await this.#store.isExpired(stream)))
        throw fewerFacts(stream)
      fold()
      for (const answer of answers) answer(cursor)
      return
    }
  }

  /**
   * Decides one command after the other, each on the state after the previous ones. The facts of the last command are
   * left for `fold`, so that a single command does not change the state before its facts are stored.
   */
  #decide(loaded: Loaded<State>, waiting: readonly Waiting<Command, Event>[]) {
    const next = loaded.revision + 1
    const facts: NewEvent[] = []
    const answers: ((cursor: Cursor | null) => void)[] = []
    const fold = (): void => {
      for (const { event, metadata } of facts.slice(loaded.revision + 1 - next)) {
        loaded.revision++
        loaded.state = this.#decider.evolve(loaded.state, { event, revision: loaded.revision, metadata })
      }
    }
    for (const { command, cause, resolve, reject } of waiting) {
      fold()
      const firstRevision = next + facts.length
      try {
        const events = this.#decider.decide(command, loaded.state)
        const ids = events.map((event) => this.#decider.idOf?.(event) ?? randomUUID())
        events.forEach((event, i) =>
          facts.push({ id: ids[i] ?? '', event, metadata: { ...cause, v: versionOf(event.type) } }),
        )
        answers.push((cursor) =>
          resolve({ events, ids, firstRevision, cursor: events.length > 0 ? cursor : null }),
        )
      } catch (error) {
        answers.push(() => reject(error))
      }
    }
    return { facts, answers, fold }
  }

  #copyOf({ state, ...rest }: Loaded<State>): Loaded<State> | undefined {
    const copy = this.#decider.copyOf?.(state)
    return copy && { ...rest, state: copy }
  }

  async #catchUp(stream: string, known: Loaded<State> | undefined): Promise<Loaded<State>> {
    const loaded = known ?? { state: this.#decider.initial(), revision: -1 }
    let isFirst = true
    try {
      for await (const recorded of this.#store.read(stream, { from: loaded.revision + 1 })) {
        if (isFirst && loaded.revision >= 0 && recorded.revision > loaded.revision + 1) {
          // The facts in between have expired, so the state is folded again without all that has expired.
          loaded.state = this.#decider.initial()
          loaded.revision = -1
          return await this.#catchUp(stream, loaded)
        }
        isFirst = false
        loaded.state = this.#fold(loaded.state, recorded)
        loaded.revision = recorded.revision
      }
    } catch (error) {
      if (error instanceof PermanentError) this.#onUnprocessable(error.message)
      throw error
    }
    return loaded
  }

  #fold(state: State, recorded: Recorded): State {
    if (recorded.event.type === 'FactExpired') return state
    try {
      return this.#decider.evolve(state, recorded)
    } catch (error) {
      throw unprocessable(recorded, messageOf(error), error)
    }
  }
}

const fewerFacts = (stream: string): AppError =>
  new AppError('unavailable', `The event store returned fewer facts of ${stream} than there are`)

const tooManyWriters = (stream: string, cause: unknown): AppError =>
  new AppError('conflict', `Too many concurrent commands change ${stream}`, { cause })

/** The revisions in a refused append; -1 is an empty stream, NaN an unknown revision. */
const revisionsIn = (error: unknown): { expected: number; actual: number } => {
  const { expected, actual } = isAppError(error, 'wrong_revision') ? error.data : {}
  const revisionOf = (value: unknown) => (value === 'none' ? -1 : typeof value === 'number' ? value : NaN)
  return { expected: revisionOf(expected), actual: revisionOf(actual) }
}
