import type { FunctionSpec } from '../events/project.ts'
import { BadMetadata, toBuildFunctions, toFunctionSpecs } from './functionSpec.ts'
import type { SandboxOptions } from '../sandbox/limits.ts'
import type { ChildCode } from '../sandbox/childCode.ts'
import type { Inspection } from '../ports/runtime.ts'
import { runTask, TaskFailed } from '../sandbox/buildTask.ts'

/** Maximum numbers that a child may report; real builds have far fewer. */
const MAX_FUNCTIONS = 10_000
const MAX_MODULES = 10_000

/** Loads every module of an unpacked build in a new child and reads its exports. */
export const inspectBuild = async (
  dir: string,
  code: ChildCode,
  options: SandboxOptions,
): Promise<Inspection> => {
  const specs: FunctionSpec[] = []
  const fileOf = new Map<string, string>()
  let mistake: string | undefined
  try {
    await runTask({
      task: 'inspect',
      dir,
      code,
      options,
      onResult: (frame) => {
        if (frame.type !== 'module' || mistake !== undefined) return
        const { ns, file, functions } = frame
        try {
          claim(fileOf, ns, file)
          specs.push(...toFunctionSpecs(ns, file, functions))
          if (specs.length > MAX_FUNCTIONS)
            throw new BadMetadata(`Expected at most ${MAX_FUNCTIONS} exported functions, got more`)
        } catch (error) {
          mistake = messageOfMistake(error)
        }
      },
    })
    return mistake === undefined
      ? { ok: true, functions: toBuildFunctions(specs) }
      : { ok: false, message: mistake }
  } catch (error) {
    return { ok: false, message: messageOfMistake(error) }
  }
}

const claim = (fileOf: Map<string, string>, ns: string, file: string): void => {
  const other = fileOf.get(ns)
  if (other) throw new BadMetadata(`${file}: Expected a unique namespace, got ${ns}, which ${other} has too`)
  fileOf.set(ns, file)
  if (fileOf.size > MAX_MODULES) throw new BadMetadata(`Expected at most ${MAX_MODULES} modules, got more`)
}

const messageOfMistake = (error: unknown): string => {
  if (error instanceof TaskFailed || error instanceof BadMetadata) return error.message
  throw error
}
