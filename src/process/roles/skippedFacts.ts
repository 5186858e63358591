import { repeat } from '../../loops/repeat.ts'
import type { SkippedFactDoc } from '../../projections/skippedFacts.ts'
import type { Node } from './node.ts'

/** Pauses between looks, milliseconds. */
const LOOK_MS = 5000

/** The facts that `/readyz` names. The operator's API lists all of them. */
const NAMED = 10

export interface SkippedFactsWatch {
  /** The fields of `/readyz`. */
  readonly details: () => object
  /** The number of facts that each read model lacks, by its name with the version. */
  readonly byReadModel: () => ReadonlyMap<string, number>
}

/**
 * Watches the facts that the read models lack, which any node of this build may have skipped. Logs each of them once per
 * process.
 */
export const watchSkippedFacts = ({ views, logger, ...background }: Node): SkippedFactsWatch => {
  const logged = new Set<string>()
  let found: readonly SkippedFactDoc[] = []
  const look = async (): Promise<void> => {
    found = await Array.fromAsync(views.skippedFacts.scan())
    for (const { read_model, type, id, cursor, error } of found) {
      const key = `${read_model} ${cursor}`
      if (logged.has(key)) continue
      logged.add(key)
      logger.warn('A read model lacks a fact, because its fold failed on it', {
        read_model,
        type,
        id,
        cursor,
        error,
      })
    }
  }
  void repeat('The watch over skipped facts', look, { ...background, logger, everyMs: LOOK_MS })
  const details = (): object =>
    found.length === 0
      ? {}
      : {
          skipped_facts: found.length,
          skipped: found
            .slice(0, NAMED)
            .map(({ read_model, type, id, cursor, error }) => ({ read_model, type, id, cursor, error })),
        }
  const byReadModel = () => {
    const counts = new Map<string, number>()
    for (const { read_model } of found) counts.set(read_model, (counts.get(read_model) ?? 0) + 1)
    return counts
  }
  return { details, byReadModel }
}
