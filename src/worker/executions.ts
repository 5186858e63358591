import { createHash } from 'node:crypto'
import { BoundedMap } from '../boundedMap.ts'
import { endRun } from '../commands/runs/endRun.ts'
import { AppError, isAppError, messageOf } from '../errors.ts'
import { envIdOf, type Recorded } from '../events/event.ts'
import type { RunError, RunPlan } from '../events/run.ts'
import type { Logger } from '../logger.ts'
import { Backoff } from '../loops/backoff.ts'
import { atMost } from '../loops/deadline.ts'
import type { FunctionRates } from '../plans/functionRates.ts'
import { buildDocId } from '../projections/builds.ts'
import type { Views } from '../projections/views.ts'
import { inputOf } from './inputs.ts'
import type { Outcome, Runtime } from '../ports/runtime.ts'
import { KeptPayloads } from './keptPayloads.ts'
import { type CredentialNow, rightsOf } from './runRights.ts'
import { RunOutput } from './runOutput.ts'
import { type HostCallDeps, serveHostCall } from './serveHostCall.ts'

export interface ExecutionDeps extends HostCallDeps {
  readonly runtime: Runtime
  readonly credentialNow: CredentialNow
  readonly logger: Logger
  readonly functionRates: Pick<FunctionRates, 'turnsOf'>
}

/** Pauses between attempts to store the end of a run. */
const PAUSES = { firstMs: 50, longestMs: 2000 }

/** Number of remembered run ids, so that no claim is executed twice. */
const REMEMBERED = 16_384

const LOST: RunError = {
  code: 'worker_lost',
  message: 'The worker missed its heartbeats and was declared lost',
}

/** The runs that this process executes, from their claim to their terminal fact. */
export class Executions {
  readonly #deps: ExecutionDeps
  readonly #runTimeoutMs: number
  readonly #cancels = new Map<string, AbortController>()
  readonly #running = new Set<Promise<void>>()
  readonly #begun = new BoundedMap<string, true>(REMEMBERED)
  readonly #changed: () => void
  #awaiting = 0

  /** `changed` is called when a place may be free. `runTimeoutMs` applies to functions without a timeout. */
  constructor(deps: ExecutionDeps, { runTimeoutMs, changed }: { runTimeoutMs: number; changed: () => void }) {
    this.#deps = deps
    this.#runTimeoutMs = runTimeoutMs
    this.#changed = changed
  }

  /** Number of occupied places. A run that waits for its child occupies none, because the child may need it. */
  get taken(): number {
    return this.#running.size - this.#awaiting
  }

  /** Whether this process began the run, which may have ended since. */
  has(run_id: string): boolean {
    return this.#begun.get(run_id) ?? false
  }

  /** Executes a run that the worker claimed, once. `carrier` is the fact with its input. */
  begin(plan: RunPlan, carrier: Recorded, worker_id: string): void {
    if (this.has(plan.run_id)) return
    this.#begun.set(plan.run_id, true)
    const cancel = new AbortController()
    this.#cancels.set(plan.run_id, cancel)
    const running = this.#run(plan, carrier, worker_id, cancel.signal).finally(() => {
      this.#cancels.delete(plan.run_id)
      this.#running.delete(running)
      this.#changed()
    })
    this.#running.add(running)
  }

  cancel(run_id: string): void {
    this.#cancels.get(run_id)?.abort()
  }

  /** Fails every run with `worker_lost`, as the recovery does, because the worker was declared lost. */
  loseAll(): void {
    for (const cancel of this.#cancels.values()) cancel.abort(LOST)
  }

  /** Resolves when every run that executes now has ended, or after `ms`. */
  async drain(ms: number): Promise<void> {
    await atMost(ms, Promise.allSettled(this.#running))
  }

  async #run(plan: RunPlan, carrier: Recorded, worker_id: string, signal: AbortSignal): Promise<void> {
    const env_id = envIdOf(carrier)
    const cause = { env_id, correlation_id: carrier.metadata.correlation_id, causation_id: plan.run_id }
    const output = new RunOutput(this.#deps, plan.run_id, cause)
    let outcome: Outcome
    try {
      outcome = await this.#invoke(plan, carrier, output, signal)
    } catch (error) {
      outcome = { status: 'failed', error: failureOf(error) }
    }
    if (signal.reason === LOST && outcome.status === 'failed') outcome = { status: 'failed', error: LOST }
    await output.close()
    const backoff = new Backoff(PAUSES)
    for (;;) {
      try {
        return await endRun(this.#deps, { plan, outcome, worker_id }, cause)
      } catch (error) {
        this.#deps.logger.warn('The end of a run could not be stored and is retried', {
          run_id: plan.run_id,
          error: messageOf(error),
        })
        await backoff.pause({ ref: false }) // W3
      }
    }
  }

  async #invoke(plan: RunPlan, carrier: Recorded, output: RunOutput, signal: AbortSignal): Promise<Outcome> {
    const deps = this.#deps
    const { store, views, payloads, keyring, runtime } = deps
    const env_id = envIdOf(carrier)
    const hash = await hashOf(views, env_id, plan)
    const kept = new KeptPayloads(payloads)
    const under = {
      kept,
      plan,
      env_id,
      correlation_id: carrier.metadata.correlation_id,
      rights: rightsOf(plan, deps.credentialNow),
      signal,
      turns: deps.functionRates.turnsOf(env_id, signal),
    }
    return runtime.invoke({
      build: {
        env_id,
        project_id: plan.project_id,
        build_id: plan.build_id,
        hash,
        rights: { context: plan.context, evaluator: evaluatorOf(plan) },
      },
      run: {
        run_id: plan.run_id,
        stream_id: plan.stream_id,
        run_type: plan.run_type,
        attempt: plan.attempt,
        event_id: plan.event_id ?? null,
        origin_run_id: plan.origin_run_id ?? null,
        project_id: plan.project_id,
        project_name: plan.project_name,
      },
      target: plan.target,
      input: await inputOf(plan, carrier, { store, payloads, keyring }, kept),
      timeoutMs: plan.timeout ?? this.#runTimeoutMs,
      signal,
      onHostCall: (call) =>
        call.op === 'run'
          ? this.#whileAwaiting(serveHostCall(deps, under, call))
          : serveHostCall(deps, under, call),
      onLog: (line) => output.write(line),
    })
  }

  async #whileAwaiting(ended: Promise<unknown>): Promise<unknown> {
    this.#awaiting++
    this.#changed()
    try {
      return await ended
    } finally {
      this.#awaiting--
    }
  }
}

/** Reads the hash of a plan's build. The directory contains the hashes of deployed builds. */
const hashOf = async (
  views: Pick<Views, 'directory' | 'builds'>,
  env_id: string,
  plan: RunPlan,
): Promise<string> => {
  const project = views.directory.project(env_id, plan.project_id)
  for (const build of [project?.deployed, project?.live])
    if (build?.build_id === plan.build_id) return build.hash
  const build = await views.builds.get(buildDocId(plan.project_id, plan.build_id))
  if (build?.env_id !== env_id) throw new AppError('not_found', `Build ${plan.build_id} no longer exists`)
  return build.hash
}

/** Evaluations share a process only with others of the same credential with the same permissions. */
const evaluatorOf = ({ target, evaluator }: RunPlan): string | undefined => {
  if (!('code' in target)) return undefined
  return evaluator ? `${evaluator.id} ${digestOf(JSON.stringify(evaluator.permissions))}` : 'unknown'
}

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex')

const failureOf = (error: unknown): RunError =>
  isAppError(error, 'not_found')
    ? { code: 'function_not_found', message: error.message }
    : { code: 'internal_error', message: messageOf(error) }
