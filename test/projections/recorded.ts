import * as assert from 'uvu/assert'
import type { Recorded } from '../../src/events/event.ts'
import type { DomainEvent } from '../../src/events/index.ts'
import type { Projection } from '../../src/projections/projection.ts'
import type { Doc } from '../../src/ports/readModels.ts'
import { docsOf } from '../support/docsOf.ts'

/** The time of fact `n`, in a log that begins with fact 0. */
export const at = (n: number): string => `2026-05-01T10:00:00.${String(n).padStart(3, '0')}Z`

const cursorOf = (n: number): string => String(n + 1).padStart(16, '0')

/** The order of a document that began with fact `n`. */
export const order = (n: number): string => `${at(n)}/${cursorOf(n)}`

/** Facts as in a new log: the first one at cursor 1, each stored a millisecond after the one before. */
export const recorded = (facts: readonly DomainEvent[], env_id = 'env'): Recorded[] =>
  facts.map((event, i) => ({
    id: `id-${i}`,
    stream: 's',
    revision: i,
    cursor: cursorOf(i),
    at: at(i),
    event,
    metadata: { env_id, correlation_id: 'c' },
  }))

/** The documents of a projection after these facts, by id. */
export const docsAfter = <D extends Doc>(
  projection: Projection<D>,
  facts: readonly DomainEvent[],
): Record<string, D> => Object.fromEntries(docsOf(projection, recorded(facts)))

/** Fails unless the documents of a fact that the projection `begins` with are the same for any stored document. */
export const beginsWith = <D extends Doc>(projection: Projection<D>, fact: DomainEvent): void => {
  const [first] = recorded([fact])
  if (!first || !projection.begins?.(first)) throw new Error(`Expected ${fact.type} to begin`)
  for (const id of projection.idsOf(first)) {
    const former = { order: 'x', some: 1 } as unknown as D
    assert.equal(projection.evolve(former, first, id), projection.evolve(null, first, id))
  }
}
