import type { FunctionSpec } from '../events/project.ts'
import type { DirectoryBuild } from './directoryProject.ts'

type ByName = ReadonlyMap<string, ReadonlyMap<string, FunctionSpec>>

/** A build may have 10,000 functions, and each call looks one up. */
const indexes = new WeakMap<DirectoryBuild, ByName>()

/** The function of a build with this namespace and name. */
export const functionIn = (build: DirectoryBuild, ns: string, name: string): FunctionSpec | undefined => {
  const index = indexes.get(build) ?? indexOf(build)
  indexes.set(build, index)
  return index.get(ns)?.get(name)
}

/** Two levels, because they need no text for each function. */
const indexOf = ({ functions }: DirectoryBuild): ByName => {
  const index = new Map<string, Map<string, FunctionSpec>>()
  for (const fn of functions) {
    const names = index.get(fn.ns) ?? new Map<string, FunctionSpec>()
    index.set(fn.ns, names)
    if (!names.has(fn.var)) names.set(fn.var, fn)
  }
  return index
}
