/** What a service has under way, read from its log: A1: an event is open until it is handled. A2: a run is open until it ends. */
import type { Recorded } from '../events/event.ts'
import type { Node } from '../process/roles/node.ts'

const TYPES = [
  'EventPublished',
  'EventHandled',
  'RunRequested',
  'RunStarted',
  'RunSucceeded',
  'RunFailed',
  'RunRetried',
  'RunCancelled',
] as const

type Log = Pick<Node, 'store'>

interface StartedRun {
  readonly run_id: string
  readonly stream_id: string
}

export class Activity {
  /** Open events and runs, and what they are. */
  readonly open = new Map<string, string>()
  /** Retries that wait for their time, milliseconds since 1970, by the run that failed. */
  readonly retries = new Map<string, number>()
  /** Every run in the order of its start. */
  readonly runs: StartedRun[] = []
  readonly #requested = new Set<string>()
  readonly #listeners = new Set<() => void>()
  #cursor: string

  constructor(cursor: string) {
    this.#cursor = cursor
  }

  /** Follows the log until the signal aborts. */
  async follow({ store }: Log, signal: AbortSignal): Promise<void> {
    const after = this.#cursor
    for await (const { events, cursor } of store.subscribe({ after, types: TYPES, signal })) {
      for (const recorded of events) this.#note(recorded)
      this.#cursor = cursor
      for (const listener of this.#listeners) listener()
    }
  }

  /** Whether everything before the position was read. */
  hasRead(position: string): boolean {
    return this.#cursor >= position
  }

  wasRequested(run_id: string): boolean {
    return this.#requested.has(run_id)
  }

  /** Resolves when the log was read further. */
  onRead(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  #note({ event }: Recorded): void {
    switch (event.type) {
      case 'EventPublished':
        return void this.open.set(event.event_id, `event ${event.event_type}`) // A1
      case 'EventHandled':
        return void this.open.delete(event.event_id)
      case 'RunRequested':
        this.#requested.add(event.run_id)
        return void this.open.set(event.run_id, nameOf(event)) // A2
      case 'RunStarted':
        this.#requested.add(event.run_id)
        this.runs.push({ run_id: event.run_id, stream_id: event.stream_id })
        return void this.open.set(event.run_id, nameOf(event))
      case 'RunFailed':
        if (event.retry_at === undefined) this.retries.delete(event.run_id) // its project was deleted, for example
        else this.retries.set(event.run_id, Date.parse(event.retry_at))
        return void this.open.delete(event.run_id)
      case 'RunRetried':
      case 'RunCancelled':
        this.retries.delete(event.run_id)
        return void this.open.delete(event.run_id)
      case 'RunSucceeded':
        return void this.open.delete(event.run_id)
      default:
    }
  }
}

const nameOf = ({ target, run_id }: { target: object; run_id: string }): string =>
  'ns' in target && 'var' in target ? `run ${String(target.ns)}/${String(target.var)}` : `run ${run_id}`
