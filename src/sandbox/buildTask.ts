import { clock } from '../clock.ts'
import { AppError } from '../errors.ts'
import { heapBytesOf } from '../loops/heapBytes.ts'
import { ProtocolViolation } from './frames.ts'
import type { ChildFrame } from './protocol.ts'
import { TaskChild, type TaskChildStart } from './taskChild.ts'

type TaskFrame = Extract<ChildFrame, { type: 'module' | 'stripped' }>

/** A build task failed. The message begins with `file:` if the task was reading a file. */
export class TaskFailed extends Error {}

const MAX_ERROR = 8 << 10

/** Bytes of memory of all functions together. Many small objects take twenty times their text. */
const MAX_HEAP = 32 << 20

/** Characters of results in progress, above which the child is not read: a disk may be slower than the compiler. */
const MAX_IN_PROGRESS = 8 << 20

/** User code wrote the text: a control character could forge a line of a terminal or a log. */
const CONTROL = /(?![\n\t])\p{Cc}/gu

export interface Task extends TaskChildStart {
  readonly task: 'inspect' | 'strip'
  /** A child that was started for this folder, and whose end the caller waits for; absent: a new one. */
  readonly child?: TaskChild | undefined
  /** The files that the child reads, each once. */
  readonly files: readonly string[]
  /** Characters of all results together. */
  readonly maxSize: number
  /** Ends the task; its reason is the error. */
  readonly signal?: AbortSignal | undefined
  /** The promise settles when the result needs no memory any more. The caller handles its rejection. */
  readonly onResult: (frame: TaskFrame) => Promise<void> | void
}

/** The usual reasons for which a module does not load in time. */
const ENDLESS = 'a loop outside of its functions does not end, or an awaited promise does not settle'

/**
 * Inspects or strips a whole build in a separate child. Rejects with `TaskFailed` when the build does not
 * load, or when it ends, blocks or breaks the child, and with `unavailable` when no child starts. User code shares the child, so it can write every frame itself.
 * K1: a frame names one of `files`, and a result names each of them once. K2: the end is accepted after every result.
 * K3: while too many results are in progress, the child is not read, and its time does not pass.
 */
export const runTask = ({
  task,
  dir,
  files,
  maxSize,
  code,
  options,
  signal,
  onResult,
  child: given,
}: Task): Promise<void> =>
  new Promise((resolve, reject) => {
    const child = given ?? new TaskChild({ dir, code, options })
    const unread = new Set(files)
    const missing = new Set(files)
    let hasBegun = false
    let size = 0
    let heap = 0
    let file = ''
    let failure: Error | undefined
    let done = false
    let hasEnded = false
    const end = (error: Error) => {
      failure ??= error
      child.kill()
    }
    const fail = (what: string) => end(new TaskFailed(printable(file ? `${file}: ${what}` : what)))
    const takeOnce = (from: Set<string>, name: string) => {
      if (!from.delete(name)) throw new ProtocolViolation('Expected each file of the build once')
    }
    let timer = setTimeout(
      () => end(new TaskFailed(`It did not start within ${options.startMs} ms`)),
      options.startMs,
    )
    let left = options.inspectMs
    let since = 0
    const countTime = () => {
      clearTimeout(timer)
      since = clock.monotonic()
      timer = setTimeout(() => fail(`Expected it to load within ${options.inspectMs} ms; ${ENDLESS}`), left)
    }
    let inProgress = 0
    let isPaused = false
    const pauseOrResume = () => {
      if (isPaused === inProgress > MAX_IN_PROGRESS || hasEnded) return
      isPaused = !isPaused
      child.listen(!isPaused)
      if (!isPaused) return countTime()
      clearTimeout(timer)
      left -= clock.monotonic() - since
    }
    const hold = (result: Promise<void> | void, length: number) => {
      if (!result) return
      inProgress += length
      pauseOrResume()
      const release = () => {
        inProgress -= length
        pauseOrResume()
      }
      result.then(release, release)
    }
    const onAbort = () => end(reasonOf(signal))
    signal?.addEventListener('abort', onAbort, { once: true })
    child.begin(task, {
      onBegin: () => {
        hasBegun = true
        countTime()
      },
      onFrame: (frame, length) => {
        if ((size += length) > maxSize)
          throw new ProtocolViolation(`Expected at most ${maxSize} characters of functions, got more`)
        switch (frame.type) {
          case 'loading':
            takeOnce(unread, frame.file) // K1
            file = frame.file
            return
          case 'module':
          case 'stripped':
            takeOnce(missing, frame.file) // K1
            if (frame.type === 'module') heap += heapBytesOf(frame.functions) + heapBytesOf(frame.unused)
            if (heap > MAX_HEAP)
              throw new ProtocolViolation(
                `Expected the lists, objects and values in the metadata of all functions to need at most ${MAX_HEAP >> 20} MiB of memory, got more`,
              )
            return hold(onResult(frame), length) // K3
          case 'fault':
            return fail('Threw an uncaught error while it was loading')
          case 'done':
            if (frame.error !== undefined)
              return end(new TaskFailed(printable(frame.error.slice(0, MAX_ERROR))))
            if (missing.size > 0) throw new ProtocolViolation('Expected every file before the end') // K2
            done = true
            if (given) resolve()
            return child.kill()
          default:
            throw new ProtocolViolation(`Expected a frame of a task, got ${frame.type}`)
        }
      },
      onEnd: (ending) => {
        hasEnded = true
        clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
        const isOurs = failure === undefined || failure instanceof TaskFailed
        const reason = failure?.message ?? ending.message
        if (!hasBegun && isOurs)
          reject(new AppError('unavailable', `No process for the build started: ${reason}`))
        else if (failure) reject(failure)
        else if (done) resolve()
        else
          reject(
            new TaskFailed(
              printable(file ? `${file}: ${ending.message} while it was loading` : ending.message),
            ),
          )
      },
    })
    if (signal?.aborted) onAbort()
  })

const printable = (text: string): string => text.replace(CONTROL, '\ufffd')

const reasonOf = (signal: AbortSignal | undefined): Error => {
  const reason: unknown = signal?.reason
  return reason instanceof Error ? reason : new Error('The task was cancelled')
}
