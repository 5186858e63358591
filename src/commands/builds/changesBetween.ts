import { isDeepStrictEqual } from 'node:util'
import { byRef, type FunctionChanges, functionChanges, refOf } from '../../domain/functionChanges.ts'
import type { FunctionSpec } from '../../events/project.ts'
import { slices } from '../../loops/slices.ts'

/** Compares long lists of functions. Other work continues meanwhile. */
export const changesBetween = async (
  before: readonly FunctionSpec[],
  after: readonly FunctionSpec[],
): Promise<FunctionChanges> => {
  const old = byRef(before)
  const same = new Set<FunctionSpec>()
  await slices.each(after, (spec) => {
    if (isDeepStrictEqual(spec, old.get(refOf(spec)))) same.add(spec)
  })
  return functionChanges(before, after, (spec) => same.has(spec))
}
