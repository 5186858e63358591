import { isDeepStrictEqual } from 'node:util'
import type { FunctionSpec } from '../events/project.ts'

/** The functions that a deployment adds, removes or gives other metadata, as references `ns/var`. */
export interface FunctionChanges {
  readonly added: readonly string[]
  readonly removed: readonly string[]
  readonly changed: readonly string[]
}

/** Compares the functions of the build that was deployed with those of its successor. */
export const functionChanges = (
  before: readonly FunctionSpec[],
  after: readonly FunctionSpec[],
): FunctionChanges => {
  const [old, current] = [byRef(before), byRef(after)]
  const kept = [...current].filter(([ref]) => old.has(ref))
  return {
    added: [...current.keys()].filter((ref) => !old.has(ref)),
    removed: [...old.keys()].filter((ref) => !current.has(ref)),
    changed: kept.filter(([ref, spec]) => !isDeepStrictEqual(spec, old.get(ref))).map(([ref]) => ref),
  }
}

const byRef = (functions: readonly FunctionSpec[]): Map<string, FunctionSpec> =>
  new Map(functions.map((spec) => [`${spec.ns}/${spec.var}`, spec]))
