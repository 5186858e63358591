import { specOf } from '../builds/metadata/functionSpec.ts'
import type { FunctionSpec } from '../events/project.ts'
import { checkedMetadata } from '../sandbox/child/buildTasks.ts'
import { isFunction } from '../sandbox/child/functions.ts'
import { metadataOf } from '../sdk/metadata.ts'

/** The metadata of a function, checked as at an upload. `what` names a function that has no name of its own. */
export const specFor = (fn: (...args: never[]) => unknown, what: string): FunctionSpec => {
  if (!isFunction(fn)) throw new TypeError(`${what}: expected a function, got ${typeof fn}`)
  const name = fn.name || what
  const where = `${name}: `
  return specOf('test', { var: name, metadata: checkedMetadata(metadataOf(fn), where) }, where)
}
