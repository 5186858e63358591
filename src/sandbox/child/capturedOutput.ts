import { Console } from 'node:console'
import { Writable } from 'node:stream'
import type { LineCutter, Source } from './output.ts'

interface OutputOwner {
  readonly ended: boolean
  readonly output: LineCutter
}

type RunOfContext = () => OutputOwner | undefined
type Streams = Readonly<Record<Source, Writable>>
type Methods = Record<string, (...args: unknown[]) => unknown>

/** Methods that change what later calls print: the depth of groups, counters and timers. */
const KEEPING = /^(?:group|count|time)/

/**
 * Assigns output to the run that printed it: `console`, `process.stdout` and `process.stderr` write to
 * the output of `runOfContext()`, or to the real streams outside any run. Output after the end of its run is dropped.
 * `shown` converts stacks and paths to those of the user.
 */
export const captureOutput = (runOfContext: RunOfContext, shown: (text: string) => string): void => {
  const streams = {
    stdout: new Captured('stdout', runOfContext, shown),
    stderr: new Captured('stderr', runOfContext, shown),
  }
  globalThis.console = consoleOf(runOfContext, streams)
  for (const source of ['stdout', 'stderr'] as const) {
    Object.defineProperty(process, source, { get: () => streams[source], configurable: true })
  }
}

/** A console whose groups, counters and timers are those of the run that uses it, or of the process outside any run. */
export const consoleOf = (runOfContext: RunOfContext, streams: Streams): Console => {
  const open = () => new Console({ ...streams, ignoreErrors: false })
  const facade = open()
  const plain = open() // of runs that have none of these
  for (const [name, method] of Object.entries(facade)) {
    if (typeof method !== 'function') continue
    const isKeeping = KEEPING.test(name)
    const print = (...args: unknown[]): unknown => {
      const run = runOfContext()
      if (!run) return (method as Methods[string])(...args)
      if (run.ended) return undefined
      if (isKeeping) run.output.console ??= open()
      return ((run.output.console ?? plain) as unknown as Methods)[name]?.(...args)
    }
    Object.defineProperty(print, 'name', { value: name })
    ;(facade as unknown as Methods)[name] = print
  }
  return facade
}

/** A stream that the runs of a process share, so none of them can close or change it. */
class Captured extends Writable {
  constructor(source: Source, runOfContext: RunOfContext, shown: (text: string) => string) {
    // oxlint-disable-next-line typescript/unbound-method -- called with `process` as its `this`
    const real = Object.getOwnPropertyDescriptor(process, source)?.get
    super({
      decodeStrings: false,
      write: (chunk: string | Buffer, encoding, done) => {
        const run = runOfContext()
        const written =
          typeof chunk === 'string' && encoding !== 'utf8' ? Buffer.from(chunk, encoding) : chunk
        if (run && !run.ended) run.output.write(source, shown(run.output.textOf(source, written)))
        if (!run) (real?.call(process) as Writable | undefined)?.write(chunk)
        done()
      },
    })
  }

  /** Writes the last chunk, if there is one. */
  override end(...args: readonly unknown[]): this {
    const [chunk] = args
    const callback = args.find((each) => typeof each === 'function') as (() => void) | undefined
    const isGiven = chunk !== undefined && chunk !== null && chunk !== callback
    const encoding = typeof args[1] === 'string' ? (args[1] as BufferEncoding) : 'utf8'
    if (isGiven) this.write(chunk, encoding)
    if (callback) process.nextTick(callback)
    return this
  }

  override destroy(): this {
    return this
  }

  override cork(): void {}

  override uncork(): void {}

  override setDefaultEncoding(): this {
    return this
  }
}
