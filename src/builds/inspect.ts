import { setImmediate } from 'node:timers/promises'
import { clock } from '../clock.ts'
import type { FunctionSpec } from '../events/project.ts'
import { checkNumbers, hasReference, toBuildFunctions, toFunctionSpecs } from './metadata/functionSpec.ts'
import type { SandboxOptions } from '../sandbox/limits.ts'
import type { ChildCode } from '../sandbox/childCode.ts'
import { namespacesOf, sourcesOf } from '../sandbox/namespaces.ts'
import type { RawFunction } from '../sandbox/protocol.ts'
import type { Inspection } from '../ports/runtime.ts'
import { runTask, type Task, TaskFailed } from '../sandbox/buildTask.ts'
import type { Candidate } from './buildCache.ts'
import { noFunctions, remarksOn, unnamedText, unusedText } from './foundFiles.ts'
import { BadMetadata } from './metadata/metadataFields.ts'

/** Characters of JSON that a child may report about one build. */
const MAX_REPORT = 16 << 20
/** Checks of metadata occupy the service's thread for this time at most; a schedule takes milliseconds. */
const SLICE_MS = 10

interface Tools extends Pick<Task, 'child'> {
  readonly code: ChildCode
  readonly options: SandboxOptions
  readonly signal?: AbortSignal | undefined
}

/** Loads every module of an unpacked build in a child of its own and reads its exports. */
export const inspectBuild = async (
  { dir, files }: Candidate,
  { code, options, signal, child }: Tools,
): Promise<Inspection> => {
  const namespaces = namespacesOf(sourcesOf(files).sort())
  const reported = new Map<string, readonly RawFunction[]>()
  const unused = new Map<string, readonly string[]>()
  try {
    claimAll(namespaces)
    await runTask({
      task: 'inspect',
      dir,
      files: namespaces.map(({ file }) => file),
      maxSize: MAX_REPORT,
      code,
      options,
      signal,
      child,
      onResult: (frame) => {
        if (frame.type !== 'module') return
        reported.set(frame.file, frame.functions)
        if (frame.unused) unused.set(frame.file, frame.unused)
      },
    })
    const specs: FunctionSpec[] = []
    let [schedules, since] = [0, clock.monotonic()]
    for (const { ns, file } of namespaces) {
      for (const raw of reported.get(file) ?? []) {
        const spec = toFunctionSpecs(ns, file, [raw])
        specs.push(...spec)
        schedules += spec.some(({ schedule }) => schedule) ? 1 : 0
        checkNumbers(specs.length, schedules)
        if (clock.monotonic() - since < SLICE_MS) continue
        await setImmediate()
        since = clock.monotonic()
      }
    }
    const mistakes = [
      ...[...reported].flatMap(([file, functions]) =>
        unnamedText(
          file,
          functions.filter((raw) => !hasReference(raw)).map((raw) => raw.var),
        ),
      ),
      ...[...unused].flatMap(([file, names]) => unusedText(file, names)),
    ]
    if (specs.length === 0) throw new BadMetadata([noFunctions(files, namespaces), ...mistakes].join('; '))
    return { ok: true, functions: toBuildFunctions(specs), ...remarksOn(files, mistakes) }
  } catch (error) {
    return { ok: false, message: messageOfMistake(error) }
  }
}

const claimAll = (namespaces: readonly { readonly ns: string; readonly file: string }[]): void => {
  const fileOf = new Map<string, string>()
  for (const { ns, file } of namespaces) {
    const other = fileOf.get(ns)
    if (other)
      throw new BadMetadata(`${file}: Expected a unique namespace, got ${ns}, which ${other} has too`)
    fileOf.set(ns, file)
  }
}

const messageOfMistake = (error: unknown): string => {
  if (error instanceof TaskFailed || error instanceof BadMetadata) return error.message
  throw error
}
