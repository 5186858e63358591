import { once } from 'node:events'
import { silent } from '../../src/logger.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import type { ReadModels } from '../../src/ports/readModels.ts'
import { nameOf, type Projection } from '../../src/projections/projection.ts'
import { Projectors } from '../../src/projections/projectors.ts'
import { rebuildRequested } from '../../src/projections/rebuilding.ts'
import { type RebuildDoc, Rebuilds, rebuilds } from '../../src/projections/rebuilds.ts'
import { shadowOf } from '../../src/projections/shadow.ts'
import { until } from '../support/until.ts'
import { any, type Engines } from './projectedNames.ts'

export const NAME = nameOf(any)
export const shadow = shadowOf(any)
export const LOOK_MS = 5

/** Projectors that have caught up, and what rebuilds for them. */
export const started = async (
  { store, readModels, stopping }: Engines,
  projections: readonly Projection[] = [any],
) => {
  const projectors = new Projectors({ store, readModels, logger: silent, projections })
  void projectors.run(stopping.signal)
  await Promise.all(projections.map(async (each) => projectors.reach(nameOf(each), await store.head())))
  const deps = { readModels, store, projectors, logger: silent, onSkipped: () => {}, lookMs: LOOK_MS }
  return { projectors, rebuilding: () => void rebuildRequested(deps, stopping.signal).catch(() => {}) } // the engines close at the end
}

/** The projectors with other reads of the log for rebuilds. */
export const forwardingProjectors = (projectors: Projectors, reads: Pick<EventStore, 'subscribe'>) => ({
  reads: { subscribe: reads.subscribe.bind(reads), expect: () => () => {} },
  pausing: projectors.pausing.bind(projectors),
  projectionOf: projectors.projectionOf.bind(projectors),
  reach: projectors.reach.bind(projectors),
})

export const hasShadow = async (readModels: ReadModels): Promise<boolean> =>
  (await readModels.versions()).some(({ name }) => name === shadow.name)

export const docOf = async (readModels: ReadModels): Promise<RebuildDoc | null> =>
  readModels.reader<RebuildDoc>(rebuilds).get(NAME)

export const ended = (readModels: ReadModels): Promise<RebuildDoc> =>
  until(async () => {
    const doc = await docOf(readModels)
    return doc?.ended_at ? doc : undefined
  })

export const request = async (readModels: ReadModels, verify = false): Promise<void> =>
  (await Rebuilds.open(readModels)).request(NAME, { verify })

/** Changes a document as a defect of an earlier build did. */
export const damage = async (readModels: ReadModels, id: string): Promise<void> => {
  const writer = await readModels.writer(any)
  const [stored] = (await writer.stored([id])).values()
  const doc = { ...stored?.doc, name: 'damaged' }
  await writer.write([{ id, doc, cursor: `${stored?.cursor ?? ''}x` }], '')
}

/** Reads of the log that wait until they are released, or until they end. */
export const held = (reads: Pick<EventStore, 'subscribe'>) => {
  const released = Promise.withResolvers<void>()
  const waiting = new Set<AbortSignal>()
  return {
    waiting,
    release: () => released.resolve(),
    async *subscribe(options: Parameters<EventStore['subscribe']>[0]) {
      waiting.add(options.signal)
      await Promise.race([released.promise, once(options.signal, 'abort')])
      waiting.delete(options.signal)
      if (!options.signal.aborted) yield* reads.subscribe(options)
    },
  }
}
