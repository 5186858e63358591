import type { Recorded } from '../../src/events/event.ts'
import { START } from '../../src/events/event.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import type { Kind, Ledger, Write } from './ledger.ts'

/** Reads all facts of a log, in order. */
export const factsIn = async (store: EventStore): Promise<Recorded[]> => {
  const facts: Recorded[] = []
  const reading = new AbortController()
  for await (const { events, caughtUp } of store.subscribe({ after: START, signal: reading.signal })) {
    facts.push(...events)
    if (caughtUp) reading.abort()
  }
  return facts
}

/** Whether a fact is the one without which a write must not be acknowledged. */
const PROOFS: Readonly<Record<Kind, (fact: Recorded, write: Acknowledged) => boolean>> = {
  event: ({ event }, { acknowledged }) =>
    event.type === 'EventPublished' && event.event_id === acknowledged.id,
  webhook: ({ event }, { acknowledged }) => event.type === 'RunSucceeded' && event.run_id === acknowledged.id,
  file: (fact, write) => fact.event.type === 'FileStored' && isOfRequest(fact, write),
  upload: (fact, write) => fact.event.type === 'FileStored' && isOfRequest(fact, write),
  variable: (fact, write) => fact.event.type.startsWith('ContextVariable') && isOfRequest(fact, write),
  deployment: ({ event }, { acknowledged }) =>
    event.type === 'BuildDeployed' && event.build_id === acknowledged.id,
  erasure: (fact, write) => fact.event.type === 'DataKeysDestroyed' && isOfRequest(fact, write),
  rotation: (fact, write) => fact.event.type === 'MasterKeyReplaced' && isOfRequest(fact, write),
}

/** A repetition of these is answered without a new fact while the first one is in progress. */
const REPEATABLE: ReadonlySet<Kind> = new Set(['rotation'])

type Acknowledged = Write & Required<Pick<Write, 'acknowledged'>>

const isOfRequest = ({ metadata }: Recorded, { acknowledged }: Acknowledged): boolean =>
  metadata.correlation_id === acknowledged.request_id

/** The log that a recording has left, which every earlier state of it must be a beginning of. */
export class Reference {
  readonly facts: readonly Recorded[]
  readonly #texts: readonly string[]
  /** The number of facts that must be durable when a request was answered. */
  readonly #needs = new Map<string, number>()

  constructor(facts: readonly Recorded[], ledger: Ledger) {
    this.facts = facts
    this.#texts = facts.map((fact) => JSON.stringify(fact))
    for (const write of ledger.writes) {
      const { acknowledged } = write
      if (!acknowledged) continue
      const proof = facts.findLastIndex((fact) => PROOFS[write.kind](fact, { ...write, acknowledged }))
      if (proof < 0 && REPEATABLE.has(write.kind)) continue
      this.#needs.set(acknowledged.request_id, proof < 0 ? Infinity : proof + 1)
    }
  }

  /** The requests that were answered although the log has no fact of them. */
  get unproved(): readonly string[] {
    return [...this.#needs].filter(([, needs]) => needs === Infinity).map(([request_id]) => request_id)
  }

  /** The least number of facts that a log has after these requests were answered. */
  leastAfter(answered: ReadonlySet<string>): number {
    let least = 0
    for (const request_id of answered) least = Math.max(least, this.#needs.get(request_id) ?? 0)
    return least
  }

  /** One line if a log is not a beginning of this one, or lacks acknowledged facts. */
  problemOf(found: readonly Recorded[], least: number): string | null {
    for (const [index, fact] of found.entries())
      if (JSON.stringify(fact) !== this.#texts[index])
        return `the fact at position ${index + 1} is another one: ${JSON.stringify(fact).slice(0, 300)}`
    return found.length < least
      ? `lost acknowledged facts: expected at least ${least}, got ${found.length}`
      : null
  }
}
