import type { Recorded } from '../../src/events/event.ts'
import type { Change, Doc } from '../../src/ports/readModels.ts'
import type { Projection } from '../../src/projections/projection.ts'

/** The documents of a projection after these facts, by id. */
export const docsOf = <D extends Doc>(
  projection: Projection<D>,
  facts: readonly Recorded[],
  onChange: (change: Change<D>) => void = () => {},
): ReadonlyMap<string, D> => {
  const docs = new Map<string, D>()
  for (const fact of facts) {
    if (!projection.handles.includes(fact.event.type)) continue
    for (const id of projection.idsOf(fact)) {
      const before = docs.get(id) ?? null
      const after = projection.evolve(before, fact, id)
      onChange({ before, after, cursor: fact.cursor })
      if (after) docs.set(id, after)
      else docs.delete(id)
    }
  }
  return docs
}

/** The documents of a projection and their summaries, which are stored beside them. */
export const allDocsOf = (projection: Projection, facts: readonly Recorded[]): Doc[] => {
  const summarizer = projection.summarize?.()
  const docs = [...docsOf<Doc>(projection, facts, (change) => summarizer?.add(change)).values()]
  for (const { evolve } of summarizer?.summaries.values() ?? []) {
    const summary = evolve(undefined)
    if (summary) docs.push(summary)
  }
  return docs
}
