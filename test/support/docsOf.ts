import type { Recorded } from '../../src/events/event.ts'
import type { Projection } from '../../src/projections/projection.ts'
import type { Doc } from '../../src/ports/readModels.ts'

/** The documents of a projection after these facts, by id. */
export const docsOf = <D extends Doc>(
  projection: Projection<D>,
  facts: readonly Recorded[],
): ReadonlyMap<string, D> => {
  const docs = new Map<string, D>()
  for (const fact of facts) {
    if (!projection.handles.includes(fact.event.type)) continue
    for (const id of projection.idsOf(fact)) {
      const doc = projection.evolve(docs.get(id) ?? null, fact, id)
      if (doc) docs.set(id, doc)
      else docs.delete(id)
    }
  }
  return docs
}
