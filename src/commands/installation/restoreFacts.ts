import { openAggregates } from '../../domain/aggregates.ts'
import { AppError, isAppError } from '../../errors.ts'
import { describeFact, type NewEvent, type Recorded } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import { Unhandled } from '../../events/unhandled.ts'
import type { EventStore } from '../../ports/eventStore.ts'
import { orgIdOf } from '../orgs/createOrg.ts'
import { FIRST_ORG } from '../orgs/ensureFirstTenant.ts'
import { Appends } from '../transfer/appends.ts'
import { appendExpired } from '../transfer/expiredFacts.ts'
import { readInstallation } from './readInstallation.ts'

/** Facts of one append: with a payload of 64 KiB each, they stay below the limit of EventStoreDB. */
const FACTS_PER_APPEND = 12

/** The facts of another log, in its order. */
type Facts = AsyncIterable<Recorded>

/** Reads a whole log. Resolves with what no worker had taken. Rejects with `bad_request` for a fact of a later version. */
export const unhandledIn = async (facts: Facts): Promise<Unhandled> => {
  const unhandled = new Unhandled()
  for await (const fact of facts) {
    if (fact.unreadable !== undefined)
      throw new AppError(
        'bad_request',
        `The backup contains the fact ${describeFact(fact)}: ${fact.unreadable}; upgrade svc`,
      )
    unhandled.note(fact)
  }
  return unhandled
}

/** Rejects with `bad_request` if the event store has an installation. */
export const checkUnused = async (store: EventStore): Promise<void> => {
  const isFounded = (await readInstallation({ aggregates: openAggregates(store) })) !== null
  const ofEarlierVersion = store.read(streamOf.org(orgIdOf(FIRST_ORG)), { limit: 1 })
  if (isFounded || (await Array.fromAsync(ofEarlierVersion)).length > 0)
    throw new AppError(
      'bad_request',
      'SVC_EVENT_STORE: it contains an installation; restore into an empty event store, or with another prefix',
    )
}

interface Into {
  readonly store: EventStore
  readonly unhandled: Unhandled
  /** Where the content is stored now. */
  readonly backend: string
  /** Receives the number of facts so far. */
  readonly onRestored: (facts: number) => void
}

/**
 * Appends the facts of another log with their ids and times, in its order. The facts of the installation come last: without them, no
 * node uses what is there. A repetition changes nothing. Resolves with the number of facts.
 */
export const restoreFacts = async (
  facts: Facts,
  { store, unhandled, backend, onRestored }: Into,
): Promise<number> => {
  const installation: Recorded[] = []
  let batch: Recorded[] = []
  let done = 0
  const appends = new Appends()
  const flush = async () => {
    const [full, first] = [batch, batch[0]]
    batch = []
    if (!first) return
    await appends.add(first.stream, async () => {
      const events = full.map((fact) => restored(fact, { unhandled, backend }))
      await append(store, events, first)
      onRestored((done += full.length))
    })
  }
  for await (const fact of facts) {
    if (fact.stream === streamOf.installation) {
      installation.push(fact)
      continue
    }
    const last = batch.at(-1)
    const follows = last?.stream === fact.stream && fact.revision === last.revision + 1
    if (!follows || batch.length === FACTS_PER_APPEND) await flush()
    batch.push(fact)
  }
  await flush()
  batch = installation // its appends wait for all others
  await flush()
  await appends.finish() // also in a log of 0.1.0, which has no installation
  return done
}

/** A fact as another event store receives it. */
const restored = (fact: Recorded, { unhandled, backend }: Pick<Into, 'unhandled' | 'backend'>): NewEvent => {
  const { id, event, metadata, at } = fact
  return {
    id,
    event: 'storage_backend' in event ? { ...event, storage_backend: backend } : event,
    metadata: { ...metadata, first_at: at, ...(unhandled.has(fact) && { unhandled: true }) },
  }
}

const append = async (
  store: EventStore,
  events: readonly NewEvent[],
  { stream, revision }: Pick<Recorded, 'stream' | 'revision'>,
): Promise<void> => {
  try {
    await store.append(stream, events, revision === 0 ? 'none' : revision - 1)
  } catch (error) {
    if (!isAppError(error, 'wrong_revision')) throw error
    const [first] = events
    const { actual } = error.data
    if (first && revision > 0 && (actual === 'none' || Number(actual) < revision - 1)) {
      await appendExpired(store, { stream, count: revision, metadata: first.metadata })
      return append(store, events, { stream, revision })
    }
    throw new AppError(
      'conflict',
      `SVC_EVENT_STORE: it contains other facts of ${stream}; restore into an empty event store, or with another prefix`,
      { cause: error },
    )
  }
}
