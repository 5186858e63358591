import { readFact } from './readFact.ts'
import { BoundedMap } from '../../boundedMap.ts'
import type { EventOf } from '../../events/index.ts'
import { streamOf } from '../../events/streams.ts'
import type { EventStore } from '../../ports/eventStore.ts'

/** Runs whose start a reader of the log remembers until their end. */
const MOST = 10_000

/** The function of a run and its project, with what its start says. */
export interface RunPlace {
  /** `ns/var`; null for evaluated code. */
  readonly fn: string | null
  readonly project_id: string | null
  readonly project_name: string | null
  /** 1 for the first run, 2 for its first retry. */
  readonly attempt: number | null
  readonly start_time: string | null
}

/** Of a run that was cancelled before it started, or whose start is no longer stored. */
const UNKNOWN: RunPlace = {
  fn: null,
  project_id: null,
  project_name: null,
  attempt: null,
  start_time: null,
}

const placeOf = ({
  target,
  project_id,
  project_name,
  attempt,
  start_time,
}: EventOf<'RunStarted'>): RunPlace => ({
  fn: 'ns' in target ? `${target.ns}/${target.var}` : null,
  project_id,
  project_name,
  attempt,
  start_time,
})

type Ending = EventOf<'RunSucceeded' | 'RunFailed' | 'RunCancelled'>

/**
 * The functions of runs, for the facts of their ends, which do not contain them. A reader of the log has usually passed the start;
 * otherwise it is read, so every reader finds the same.
 */
export class RunPlaces {
  readonly #store: Pick<EventStore, 'read'>
  readonly #known = new BoundedMap<string, RunPlace>(MOST)

  constructor(store: Pick<EventStore, 'read'>) {
    this.#store = store
  }

  add(event: EventOf<'RunStarted'>): RunPlace {
    const place = placeOf(event)
    this.#known.set(event.run_id, place)
    return place
  }

  async of({ run_id, stream_id, started_revision }: Ending): Promise<RunPlace> {
    const known = this.#known.get(run_id)
    if (known || started_revision === null) return known ?? UNKNOWN
    const started = (await readFact(this.#store, streamOf.stream(stream_id), started_revision))?.event
    return started?.type === 'RunStarted' && started.run_id === run_id ? placeOf(started) : UNKNOWN
  }
}
