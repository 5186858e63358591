import type { SandboxOptions } from './limits.ts'
import type { ChildCode } from './childCode.ts'
import { startProcess } from './childProcess.ts'
import { ProtocolViolation } from './frames.ts'
import type { ChildFrame } from './protocol.ts'

type TaskFrame = Extract<ChildFrame, { type: 'module' | 'stripped' }>

/** A build task failed. The message begins with `file:` if the task was reading a file. */
export class TaskFailed extends Error {}

const MAX_ERROR = 8 << 10

export interface Task {
  readonly task: 'inspect' | 'strip'
  readonly dir: string
  readonly code: ChildCode
  readonly options: SandboxOptions
  readonly onResult: (frame: TaskFrame) => void
}

/**
 * Inspects or strips a whole build in a separate child. Rejects with `TaskFailed` when the build does not
 * load, or when it ends, blocks or breaks the child.
 */
export const runTask = ({ task, dir, code, options, onResult }: Task): Promise<void> =>
  new Promise((resolve, reject) => {
    let file = ''
    let failure: TaskFailed | undefined
    let done = false
    const fail = (what: string) => {
      failure ??= new TaskFailed(file ? `${file}: ${what}` : what)
      child.kill()
    }
    const timer = setTimeout(
      () => fail(`Expected it to load within ${options.inspectMs} ms`),
      options.inspectMs,
    )
    const child = startProcess(
      { dir, code, options },
      {
        onFrame: (frame) => {
          switch (frame.type) {
            case 'ready':
              return child.send({ type: task })
            case 'loading':
              file = frame.file
              return
            case 'module':
            case 'stripped':
              return onResult(frame)
            case 'fault':
              return fail('Threw an uncaught error while it was loading')
            case 'done':
              if (frame.error === undefined) done = true
              else failure = new TaskFailed(frame.error.slice(0, MAX_ERROR))
              return child.kill()
            default:
              throw new ProtocolViolation(`Expected a frame of a task, got ${frame.type}`)
          }
        },
        onEnd: (ending) => {
          clearTimeout(timer)
          if (failure) reject(failure)
          else if (done) resolve()
          else
            reject(new TaskFailed(file ? `${file}: ${ending.message} while it was loading` : ending.message))
        },
      },
    )
    child.send({ type: 'init', dir, outputBytes: 0 })
  })
