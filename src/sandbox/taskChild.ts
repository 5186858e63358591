import { type Ending, type SandboxedProcess, startProcess } from './childProcess.ts'
import type { ChildCode } from './childCode.ts'
import { ProtocolViolation } from './frames.ts'
import type { SandboxOptions } from './limits.ts'
import type { ChildFrame } from './protocol.ts'

export interface TaskListener {
  /** Called once, when the child has started and its task begins. */
  onBegin(): void
  /** Receives each frame of the task. If it throws `ProtocolViolation`, the child is killed. */
  onFrame(frame: ChildFrame, size: number): void
  /** Called once, after the last frame, also if the child ended before the task. */
  onEnd(ending: Ending): void
}

export interface TaskChildStart {
  /** The folder of the build. It may be empty until the task begins. */
  readonly dir: string
  readonly code: ChildCode
  readonly options: SandboxOptions
}

interface Task {
  readonly type: 'inspect' | 'strip'
  readonly listener: TaskListener
}

/** A child for one task of a build. It starts at once, and executes no user code before the task. */
export class TaskChild {
  readonly dir: string
  readonly #process: SandboxedProcess
  readonly #inspectMs: number
  #task: Task | undefined
  #started = false
  #ending: Ending | undefined
  readonly #ended = Promise.withResolvers<void>()

  constructor({ dir, code, options }: TaskChildStart) {
    this.dir = dir
    this.#inspectMs = options.inspectMs
    this.#process = startProcess(
      { dir, code, options },
      {
        onFrame: (frame, size) => {
          if (frame.type === 'ready') this.#onReady()
          else if (this.#task && this.#started) this.#task.listener.onFrame(frame, size)
          else throw new ProtocolViolation(`Expected to be ready first, got ${frame.type}`)
        },
        onEnd: (ending) => {
          this.#ending = ending
          this.#ended.resolve()
          this.#task?.listener.onEnd(ending)
        },
      },
    )
    this.#process.send({ type: 'init', dir, outputBytes: 0, forTask: true })
  }

  /** Whether the child can still take its task. */
  get usable(): boolean {
    return !this.#task && !this.#process.killed && !this.#ending
  }

  /** Resolves when the process has ended. */
  get ended(): Promise<void> {
    return this.#ended.promise
  }

  /** Begins the only task of this child, as soon as it has started. */
  begin(type: 'inspect' | 'strip', listener: TaskListener): void {
    this.#task = { type, listener }
    const ending = this.#ending
    if (ending) setImmediate(() => listener.onEnd(ending))
    else if (this.#started) this.#begin(this.#task)
  }

  /** Pauses or resumes reading from the child. One that was killed is read to its end. */
  listen(yes: boolean): void {
    if (!this.#process.killed) this.#process.listen(yes)
  }

  kill(): void {
    if (!this.#ending) this.#process.kill()
  }

  #onReady(): void {
    if (this.#started) throw new ProtocolViolation('Expected to be ready once')
    this.#started = true
    if (this.#task) this.#begin(this.#task)
  }

  #begin({ type, listener }: Task): void {
    listener.onBegin()
    this.#process.send(type === 'inspect' ? { type, withinMs: this.#inspectMs } : { type })
  }
}
