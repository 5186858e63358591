/**
 * Runs a function in this process with the code that runs it in a child of the service: its frames, its checks and its
 * errors. There is no sandbox around it.
 */
import { fileURLToPath } from 'node:url'
import type { RunError } from '../events/run.ts'
import { MAX_OUTPUT_BYTES, openOutputLimit } from '../events/outputLimit.ts'
import { callWith, execute } from '../sandbox/child/execute.ts'
import { Run } from '../sandbox/child/run.ts'
import { openStacks } from '../sandbox/child/stacks.ts'
import { frameReader, frameWriter } from '../sandbox/frames.ts'
import type { GivenValues } from '../sandbox/givenValues.ts'
import { errorOfHostCall, HostCalls } from '../sandbox/hostCalls.ts'
import { DEFAULT_OPTIONS } from '../sandbox/limits.ts'
import { type ChildFrame, parseChildFrame } from '../sandbox/protocol.ts'
import { activeRuns } from '../sdk/activeRun.ts'
import type { HostCall, Input, RunInfo } from '../sdk/wire.ts'
import { whileCaptured } from './capturedConsole.ts'

/** Captured before a test replaces them with timers of its own. */
const { setTimeout, clearTimeout } = globalThis

const runtimeDir = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '')

export type Outcome =
  | { readonly status: 'succeeded'; readonly result: unknown }
  | {
      readonly status: 'failed'
      readonly error: RunError
      /** The value that the function threw; absent if the run failed for another reason. */
      readonly thrown?: { readonly value: unknown }
    }

interface LogLine {
  readonly source: 'stdout' | 'stderr'
  readonly text: string
}

export interface LocalRun {
  readonly called: (...args: unknown[]) => unknown
  readonly info: RunInfo
  readonly input: Input
  /** Milliseconds; undefined: no limit. */
  readonly timeoutMs: number | undefined
  /** The values of context that are masked. */
  readonly given: GivenValues
  readonly serve: (call: HostCall) => Promise<unknown>
  readonly onLog: (line: LogLine) => void
}

let lastId = 0

export const runLocally = async ({ called, info, input, ...run }: LocalRun): Promise<Outcome> => {
  const stacks = openStacks(process.cwd(), runtimeDir)
  const ended = Promise.withResolvers<Outcome>()
  const calls = new HostCalls(run.serve)
  let thrown: { readonly value: unknown } | undefined

  const limited = openOutputLimit()
  const log = (line: LogLine): void => {
    const stored = limited(line)
    if (stored) run.onLog(stored)
  }
  const onFrame = (frame: ChildFrame, size: number): void => {
    switch (frame.type) {
      case 'result':
        return ended.resolve(succeeded(frame, size))
      case 'failure': {
        const byFunction = frame.code === 'function_failed' || frame.code === 'unavailable'
        const error = run.given.inFailure(frame, size)
        return ended.resolve({ status: 'failed', error, ...(byFunction && thrown && { thrown }) })
      }
      case 'log':
        return log({ source: frame.source, text: run.given.inText(frame.text) })
      case 'host':
        return void serve(frame, size)
      default:
        throw new Error(`Expected a frame of a run, got ${frame.type}`)
    }
  }
  const succeeded = async (
    frame: Extract<ChildFrame, { type: 'result' }>,
    size: number,
  ): Promise<Outcome> => {
    const { value } = await run.given.inFrame(frame, size)
    return { status: 'succeeded', result: value }
  }
  const serve = async (frame: Extract<ChildFrame, { type: 'host' }>, size: number): Promise<void> => {
    const { call } = frame
    const reply = (answer: object) =>
      local.onReply({ type: 'reply', id: local.id, call, ...(JSON.parse(JSON.stringify(answer)) as object) })
    try {
      calls.begin(call)
      const { request } = await run.given.inFrame(frame, size)
      const value = await calls.serve(request)
      if (request.op === 'context') run.given.add(value)
      reply({ value })
    } catch (error) {
      reply({ error: errorOfHostCall(error) })
    }
  }
  const read = frameReader((json) => onFrame(parseChildFrame(json), json.length))
  const writer = frameWriter(read)
  const channel = {
    send: (frame: object) => writer.send(JSON.stringify(frame)),
    sendJson: writer.send,
  }
  const local = new Run({ id: ++lastId, run: info }, channel, MAX_OUTPUT_BYTES, () => {})
  const limit = limitOf(run.timeoutMs, local)
  const remembered = async (): Promise<unknown> => {
    try {
      return await callWith(called, JSON.parse(JSON.stringify(input)) as Input) // each attempt has its own
    } catch (error) {
      thrown = { value: error }
      throw error
    }
  }
  try {
    void whileCaptured(() => activeRuns.run(local, execute, local, remembered, stacks))
    const outcome = await Promise.race([ended.promise, limit.over])
    await calls.settled()
    return limit.error ? { status: 'failed', error: limit.error } : outcome
  } finally {
    limit.clear()
  }
}

/** Stops the run after its time, and gives it up when it does not end then. */
const limitOf = (timeoutMs: number | undefined, run: Run) => {
  const over = Promise.withResolvers<Outcome>()
  let timer: NodeJS.Timeout | undefined
  const limit: { error?: RunError; readonly over: Promise<Outcome>; clear(): void } = {
    over: over.promise,
    clear: () => clearTimeout(timer),
  }
  if (timeoutMs === undefined) return limit
  timer = setTimeout(() => {
    const error = { code: 'timeout', message: `The run did not end within ${timeoutMs} ms` } as const
    limit.error = error
    run.stop('timeout')
    timer = setTimeout(() => over.resolve({ status: 'failed', error }), DEFAULT_OPTIONS.graceMs)
  }, timeoutMs)
  return limit
}
