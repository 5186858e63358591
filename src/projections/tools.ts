import type { FunctionSpec } from '../events/project.ts'
import { toolNameBeside, toolNameOf } from '../events/toolName.ts'

/** The part of a deployed function that decides its name. */
interface Named {
  readonly project: { readonly project_id: string }
  readonly fn: FunctionSpec
}

/**
 * The tools of an environment by name. If two projects have the same tool, the older project keeps the name, so that a
 * deployment never changes what an existing name means.
 */
export const toolsByName = <Tool extends Named>(tools: readonly Tool[]): ReadonlyMap<string, Tool> => {
  const named = new Map<string, Tool>()
  // Ids of projects begin with the time of their creation.
  for (const tool of tools.toSorted((a, b) => compare(a.project.project_id, b.project.project_id))) {
    const { fn, project } = tool
    if (!fn.mcp) continue
    const name = toolNameOf(fn.mcp.service, fn.ns, fn.var)
    named.set(named.has(name) ? toolNameBeside(name, project.project_id) : name, tool)
  }
  return new Map([...named].sort(([a], [b]) => compare(a, b)))
}

const compare = (a: string, b: string): number => (a < b ? -1 : 1)
