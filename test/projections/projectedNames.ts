import { openEventStore } from '../../src/adapters/embedded/eventStore/index.ts'
import { openReadModels } from '../../src/adapters/embedded/readModels/index.ts'
import { AppError } from '../../src/errors.ts'
import type { NewEvent } from '../../src/events/event.ts'
import type { DomainEvent } from '../../src/events/index.ts'
import { newId } from '../../src/ids.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import type { Doc, ReadModels, WritableCollection } from '../../src/ports/readModels.ts'
import { orderOf, type Projection } from '../../src/projections/projection.ts'
import type { Projector } from '../../src/projections/projector.ts'
import { forwarding } from '../support/forwarding.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

export type NameDoc = { readonly name: string; readonly renamed: number; readonly order: string }

/** A small projection that counts, so that an event folded twice shows. */
export const names: Projection<NameDoc> = {
  name: 'names',
  version: 1,
  indexes: [{ equal: [], sort: 'order', counted: true }],
  handles: ['ProjectCreated', 'ProjectRenamed', 'ProjectDeleted'],
  idsOf: ({ event }) => ('project_id' in event ? [event.project_id ?? ''] : []),
  evolve(doc, recorded) {
    const { event } = recorded
    if (event.type === 'ProjectCreated') return { name: event.name, renamed: 0, order: orderOf(recorded) }
    if (event.type === 'ProjectRenamed') return doc && { ...doc, name: event.name, renamed: doc.renamed + 1 }
    return null
  },
}
export const any = names as unknown as Projection
/** The same, of which the first fact is folded without a look at what is stored. */
export const begins: Projection = { ...any, begins: ({ event }) => event.type === 'ProjectCreated' }

export const newEvents = (facts: readonly DomainEvent[]): NewEvent[] =>
  facts.map((event) => ({ id: newId(), event, metadata: { env_id: 'env', correlation_id: 'c' } }))

/** A project from its beginning, renamed so often. */
export const life = (project_id: string, renames: number): DomainEvent[] => [
  { type: 'ProjectCreated', project_id, name: 'n' },
  ...Array.from({ length: renames }, (_, i) => ({
    type: 'ProjectRenamed' as const,
    project_id,
    name: `n${i}`,
  })),
]

interface Context {
  store: EventStore
  readModels: ReadModels
  stopping: AbortController
  /** Runs a projector until the end of the test. */
  run(projector: Projector): Promise<void>
}

/** What projectors and rebuilds of one test work on, and what ends them. */
export type Engines = Pick<Context, 'store' | 'readModels' | 'stopping'>

/** A suite of projectors, each test on a log and read models of its own. */
export const projecting = (what: string, timeoutMs = 30_000) => {
  const projector = suite<Context>(what, { timeoutMs })
  projector.before.each((context) => {
    const stopping = new AbortController()
    const run = (projector: Projector) => projector.run(stopping.signal)
    Object.assign(context, {
      store: openEventStore({ dir: tempDir() }),
      readModels: openReadModels({ dir: tempDir() }),
      stopping,
      run,
    })
  })
  projector.after.each(async ({ store, readModels, stopping }) => {
    stopping.abort()
    await store.close()
    await readModels.close()
  })
  return projector
}

/** The store with another way to subscribe. */
export const forward = (store: EventStore, subscribe: EventStore['subscribe']): EventStore =>
  forwarding(store, { subscribe })

/** The read models whose writers are other than they were. */
export const withWriter = (
  readModels: ReadModels,
  change: (collection: WritableCollection) => Partial<WritableCollection>,
): ReadModels => ({
  reader: (spec) => readModels.reader(spec),
  versions: () => readModels.versions(),
  drop: (version, isUnread) => readModels.drop(version, isUnread),
  replace: (version, by, isUnread) => readModels.replace(version, by, isUnread),
  source: () => readModels.source(),
  assign: (log_id) => readModels.assign(log_id),
  countAfter: (cursor) => readModels.countAfter(cursor),
  restart: (log_id) => readModels.restart(log_id),
  close: () => readModels.close(),
  async writer(spec) {
    const collection = await readModels.writer(spec)
    return { ...collection, ...change(collection) } as never
  },
})

/** Read models that fail once when an exchange is complete, and what happens in this moment. */
export const failingAfterExchange = (
  readModels: ReadModels,
  meanwhile: () => Promise<unknown>,
): ReadModels => {
  let isDown = true
  return {
    ...withWriter(readModels, () => ({})),
    async replace(...args) {
      const isUnread = await readModels.replace(...args)
      if (!isDown) return isUnread
      isDown = false
      await meanwhile()
      throw new AppError('unavailable', 'down')
    },
  }
}

export const dump = async (readModels: ReadModels, spec: Projection = any): Promise<Doc[]> =>
  (await Array.fromAsync(readModels.reader(spec).scan())).sort((a, b) =>
    String(a['order']) < String(b['order']) ? -1 : 1,
  )
