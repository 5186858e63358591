import { isDeepStrictEqual } from 'node:util'
import type { FunctionSpec } from '../events/project.ts'

/** The functions that a deployment adds, removes or gives other metadata, as references `ns/var`. */
export interface FunctionChanges {
  readonly added: readonly string[]
  readonly removed: readonly string[]
  readonly changed: readonly string[]
}

/** Compares the functions of the build that was deployed with those of its successor. `isSame`: of two with one name. */
export const functionChanges = (
  before: readonly FunctionSpec[],
  after: readonly FunctionSpec[],
  isSame: (after: FunctionSpec, before: FunctionSpec | undefined) => boolean = isDeepStrictEqual,
): FunctionChanges => {
  const [old, current] = [byRef(before), byRef(after)]
  const kept = [...current].filter(([ref]) => old.has(ref))
  return {
    added: [...current.keys()].filter((ref) => !old.has(ref)),
    removed: [...old.keys()].filter((ref) => !current.has(ref)),
    changed: kept.filter(([ref, spec]) => !isSame(spec, old.get(ref))).map(([ref]) => ref),
  }
}

export const byRef = (functions: readonly FunctionSpec[]): Map<string, FunctionSpec> =>
  new Map(functions.map((spec) => [refOf(spec), spec]))

export const refOf = ({ ns, var: name }: FunctionSpec): string => `${ns}/${name}`
