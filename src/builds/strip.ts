import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError, messageOf } from '../errors.ts'
import type { SandboxOptions } from '../sandbox/limits.ts'
import type { ChildCode } from '../sandbox/childCode.ts'
import { runTask, TaskFailed } from '../sandbox/buildTask.ts'

/**
 * Removes the types from each TypeScript module of an unpacked build, so that no child needs the compiler. A child
 * parses the modules, because the service itself must not parse users' code.
 */
export const stripBuild = async (
  dir: string,
  sources: readonly string[],
  {
    code,
    options,
    signal,
  }: {
    readonly code: ChildCode
    readonly options: SandboxOptions
    readonly signal?: AbortSignal | undefined
  },
): Promise<void> => {
  const writes: Promise<void>[] = []
  try {
    await runTask({
      task: 'strip',
      dir,
      files: sources,
      maxSize: Infinity, // the compiler alone runs here, and each file has one frame
      code,
      options,
      signal,
      onResult: (frame) => {
        if (frame.type === 'stripped') writes.push(writeFile(join(dir, frame.file), frame.code))
      },
    })
  } catch (error) {
    if (!(error instanceof TaskFailed)) throw error
    throw new AppError('bad_request', messageOf(error), { cause: error })
  } finally {
    await Promise.all(writes)
  }
}
