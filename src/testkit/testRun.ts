import { delayOf } from '../domain/run.ts'
import { clock, isoOf } from '../clock.ts'
import { checkContextKey } from '../events/contextKey.ts'
import type { FunctionSpec } from '../events/project.ts'
import type { RunError } from '../client/api.ts'
import { newId } from '../ids.ts'
import { toUserError } from '../sandbox/child/callSite.ts'
import { isFunction } from '../sandbox/child/functions.ts'
import { GivenValues } from '../sandbox/givenValues.ts'
import { Intake } from '../sandbox/intake.ts'
import type { RunInfo } from '../sdk/wire.ts'
import { demandKeys, msOf } from './expected.ts'
import { specFor } from './functionSpec.ts'
import { type GivenInput, inputOf } from './inputs.ts'
import { type LocalRun, type Outcome, runLocally } from './localRun.ts'
import { MemoryFiles } from './memoryFiles.ts'
import { serveLocally, type World } from './serveLocally.ts'
import type * as Kit from './types.ts'

type Attempt = Pick<LocalRun, 'called'> & {
  readonly spec: FunctionSpec
  readonly given: GivenInput
  readonly attempt: number
  readonly origin_run_id: string | null
}

const OPTIONS = ['context', 'files', 'calls', 'now']

export class TestRun {
  /** The events that functions sent, in order. */
  readonly sent: Kit.Sent[] = []
  /** The live data that functions emitted, in order. */
  readonly emitted: Kit.Emitted[] = []
  /** What functions started by `call` and `run`, in order. */
  readonly calls: Kit.Called[] = []
  /** What functions wrote to `console`, in lines. */
  readonly logs: Kit.Logged[] = []
  /** The error of the last run as the service stores it; null if the run succeeded. */
  error: RunError | null = null
  /** The retry that follows the last run; null if there is none. */
  nextRetry: Kit.NextRetry | null = null
  readonly #context: ReadonlyMap<string, string>
  readonly #files: MemoryFiles
  readonly #stubs: ReadonlyMap<string, Kit.AnyFunction>
  readonly #now: () => number
  readonly #keyed: World['keyed'] = new Map()
  readonly #given = new GivenValues(idleIntake())
  readonly #place = { stream_id: newId(), project_id: newId(), project_name: 'test' }
  #failed: Attempt | undefined

  constructor(options: Kit.TestRunOptions) {
    demandKeys('testRun(options)', options, OPTIONS)
    const { context = {}, files = {}, calls = {}, now } = options
    const fixed = now === undefined ? undefined : msOf('now', now)
    this.#now = () => fixed ?? clock.now()
    this.#context = new Map(Object.entries(context))
    for (const [key, value] of this.#context) {
      checkContextKey(key)
      if (typeof value !== 'string')
        throw new TypeError(`context["${key}"]: expected a string, got ${typeof value}`)
    }
    this.#stubs = new Map(Object.entries(calls))
    for (const [ref, stub] of this.#stubs)
      if (!isFunction(stub)) throw new TypeError(`calls["${ref}"]: expected a function, got ${typeof stub}`)
    this.#files = new MemoryFiles(files, () => isoOf(this.#now()))
  }

  /** The files of the environment: text if it is UTF-8, otherwise bytes. */
  get files(): Readonly<Record<string, string | Uint8Array>> {
    return this.#files.contents
  }

  /**
   * Runs the function. Resolves with its result as JSON; rejects with what it threw, or with the error of the run. An
   * event needs its data only, and a request what the function reads of it.
   */
  async run<F extends Kit.AnyFunction>(fn: F, ...input: Kit.InputOf<F>): Promise<Kit.ResultOf<F>> {
    const spec = specFor(fn, 'fn')
    const given = inputOf(spec, input, this.#now())
    const called = fn as unknown as LocalRun['called']
    return (await this.#attempt({ called, spec, given, attempt: 1, origin_run_id: null })) as Kit.ResultOf<F>
  }

  /**
   * Makes the retries that follow the last run, at most `times`, without their delays. Resolves with the result of the first
   * that succeeds; rejects with the error of the last one.
   */
  async retry(times = 1): Promise<unknown> {
    if (!Number.isInteger(times) || times < 1)
      throw new TypeError(`retry(times): expected a whole number from 1, got ${String(times)}`)
    for (let left = times; ; left--) {
      const failed = this.#failed
      if (!failed || !this.nextRetry) throw new Error(this.#noRetry(failed))
      try {
        return await this.#attempt({ ...failed, attempt: failed.attempt + 1 })
      } catch (error) {
        if (left === 1) throw error
      }
    }
  }

  #noRetry(failed: Attempt | undefined): string {
    if (!failed) return 'retry(): expected a run that failed, got none'
    const { attempts = 0 } = failed.spec.retry ?? {}
    return `retry(): expected at most ${attempts} retries, as the metadata of the function declares, got ${failed.attempt}`
  }

  async #attempt(attempt: Attempt): Promise<unknown> {
    const { called, spec, given, origin_run_id } = attempt
    const info = this.#infoOf(given.run_type, {
      attempt: attempt.attempt,
      event_id: given.event_id,
      origin_run_id,
    })
    this.#failed = undefined
    this.nextRetry = null
    this.error = null
    const outcome = await this.#runLocally(called, spec, { info, input: given.input })
    if (outcome.status === 'succeeded') return outcome.result
    this.error = outcome.error
    this.#failed = { ...attempt, origin_run_id: origin_run_id ?? info.run_id }
    const { retry } = given.input.kind === 'webhook' ? {} : spec // the sender of a request repeats it
    const delay = delayOf({ ...(retry && { retry }), attempt: attempt.attempt })
    this.nextRetry = delay === undefined ? null : { attempt: attempt.attempt + 1, delay }
    if (outcome.thrown) throw outcome.thrown.value
    throw toUserError({
      code: outcome.error.code,
      message: outcome.error.message,
      run_id: info.run_id,
      failure: outcome.error,
    })
  }

  #runLocally(
    called: LocalRun['called'],
    spec: FunctionSpec,
    { info, input }: Pick<LocalRun, 'info' | 'input'>,
  ): Promise<Outcome> {
    const world = {
      sent: this.sent,
      emitted: this.emitted,
      calls: this.calls,
      keyed: this.#keyed,
      context: this.#context,
      files: this.#files,
      stubs: this.#stubs,
      runChild: (ref: string, stub: Kit.AnyFunction, args: readonly unknown[]) => {
        const child = this.#infoOf('run', { attempt: 1, event_id: null, origin_run_id: null })
        const given = { info: child, input: { kind: 'args', args } } as const
        const running = this.#runLocally(stub as unknown as LocalRun['called'], specFor(stub, ref), given)
        return running.then((outcome) => ({ run_id: child.run_id, outcome }))
      },
    }
    return runLocally({
      called,
      info,
      input,
      timeoutMs: spec.timeout,
      given: this.#given,
      serve: (call) => serveLocally(world, { spec, info }, call),
      onLog: (line) => void this.logs.push(line),
    })
  }

  #infoOf(
    run_type: RunInfo['run_type'],
    more: Pick<RunInfo, 'attempt' | 'event_id' | 'origin_run_id'>,
  ): RunInfo {
    const { stream_id, ...project } = this.#place
    return { run_id: newId(), stream_id, run_type, ...more, ...project }
  }
}

/** The values of context are masked as in the service, without its limits on the traffic of a child. */
const idleIntake = (): Intake => {
  const intake = new Intake({ unread: 0, listen: () => {} })
  intake.end()
  return intake
}
