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
  const failed = new AbortController()
  let writing: Promise<void> = Promise.resolve()
  const write = async (file: string, content: string): Promise<void> => {
    await writing
    await writeFile(join(dir, file), content)
  }
  try {
    await runTask({
      task: 'strip',
      dir,
      files: sources,
      maxSize: Infinity, // the compiler alone runs here, and each file has one frame
      code,
      options,
      signal: signal ? AbortSignal.any([signal, failed.signal]) : failed.signal,
      onResult: (frame) => {
        if (frame.type !== 'stripped') return
        writing = write(frame.file, frame.code)
        writing.catch((error: unknown) => failed.abort(error)) // a disk without room ends the task
        return writing
      },
    })
  } catch (error) {
    if (!(error instanceof TaskFailed)) throw error
    throw new AppError('bad_request', messageOf(error), { cause: error })
  } finally {
    await writing
  }
}
