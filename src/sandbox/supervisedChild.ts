import { randomInt } from 'node:crypto'
import { clock } from '../clock.ts'
import { messageOf } from '../errors.ts'
import { blaming, MAX_FRAME, ProtocolViolation } from './frames.ts'
import type { SandboxOptions } from './limits.ts'
import { ChildEnd } from './childEnd.ts'
import { Condition } from './condition.ts'
import { type Ending, type SandboxedProcess, type Start, startProcess } from './childProcess.ts'
import type { ChildFrame, StopReason } from './protocol.ts'
import { Intake, MAX_UNREAD } from './intake.ts'
import { GivenValues } from './givenValues.ts'
import { cpuShare } from './cpuShare.ts'
import { Pulse } from './pulse.ts'
import { HostCallReplies } from './hostCallReplies.ts'
import { type Job, OpenRun } from './openRun.ts'
import { OpenRuns } from './openRuns.ts'
import { RawJson } from '../events/rawJson.ts'
import type { Hold, Input, Outcome } from '../ports/runtime.ts'

export interface ChildListener {
  onReady(): void
  /** Called when a run has ended or waits for a child run, so that the child may have room. */
  onFreed(child: SupervisedChild): void
  /** Called when the child accepts no more runs; it ends after the last one. */
  onDraining(child: SupervisedChild): void
  onEnd(child: SupervisedChild): void
}

/** Ids of runs are random below this, so that no run can name another one in a frame. */
const MAX_ID = 2 ** 47

const UNREAD = 'The process did not read the replies to its requests'

/** Limits the runs that wait for child runs: at this many for each one that may work, only child runs begin. */
const AWAITING_PER_RUN = 10

/**
 * Owns one warm process and its runs: `starting` → `ready` → `draining` → `ended`; all but the last can be skipped.
 * C1: a run is settled once, by its own reply, at the end of its grace period or by the end of the child.
 * C2: no run is sent to a child that is not `ready`. C3: a frame that no active run can send kills the child.
 * C4: time in which the service could not receive the end of a run does not count as time of the run.
 */
export class SupervisedChild {
  state: 'starting' | 'ready' | 'draining' | 'ended' = 'starting'
  /** True after a run has completed here: a later crash is then not a crash at start. */
  proven = false
  /** True when the service ended the child, so that no backoff is due. */
  retired = false
  wasReady = false
  /** Monotonic milliseconds since when it takes runs; infinite before. */
  readyAt = Infinity
  /** True when it gives up its place: it ends after its last run. */
  isYielding = false
  /** The reason for its end, as text. */
  ending = ''
  idleSince: number
  readonly #options: SandboxOptions
  readonly #listener: ChildListener
  readonly #process: SandboxedProcess
  readonly #runs = new OpenRuns()
  /** Milliseconds since the start, by the share of a processor. */
  #startingMs = 0
  /** Monotonic milliseconds of the latest tick or run, which is precise enough for deadlines. */
  #now: number
  readonly #end = new ChildEnd()
  #begun = 0
  readonly #intake: Intake
  readonly #hold: Hold = (bytes) => this.#intake.hold(bytes)
  #faulty = false
  #wasClogged = false
  readonly #given: GivenValues
  readonly #pulse: Pulse
  readonly #condition: Condition
  readonly #replies: HostCallReplies

  constructor(start: Start, now: number, listener: ChildListener) {
    const { dir, options } = start
    this.#options = options
    this.#listener = listener
    this.#now = now
    this.idleSince = now
    this.#process = startProcess(start, {
      onFrame: (frame, size) => this.#onFrame(frame, size),
      onEnd: (ending) => this.#onEnd(ending),
    })
    this.#intake = new Intake(this.#process)
    this.#given = new GivenValues(this.#intake)
    this.#pulse = new Pulse(this.#process, options)
    this.#condition = new Condition(options)
    this.#replies = new HostCallReplies({
      process: this.#process,
      intake: this.#intake,
      given: this.#given,
      isOpen: (id) => this.state !== 'ended' && this.#runs.has(id),
      awaiting: (active, more) => {
        if (this.#runs.await(active, more)) this.#listener.onFreed(this)
      },
      drain: () => this.drain(),
      onUnread: () => this.kill('unresponsive', UNREAD),
    })
    this.#process.send({ type: 'init', dir, outputBytes: options.outputBytes })
  }

  get size(): number {
    return this.#runs.size
  }

  /**
   * The number of runs that it accepts now. Runs that wait for a child run do not count: they could block the child runs
   * that they wait for.
   */
  get room(): number {
    if (!this.#isOpen) return 0
    return this.#options.runsPerChild - this.#runs.working
  }

  /** The number of those for which no run waits. They must leave memory to the child runs that they may start. */
  get roomForOthers(): number {
    return Math.min(this.room, this.#options.runsPerChild * AWAITING_PER_RUN - this.#runs.size)
  }

  /** Whether it answers and accepts no more runs, or only child runs. */
  get isFull(): boolean {
    return this.#isOpen && this.roomForOthers <= 0
  }

  /** Whether a run waits for a child run. */
  get awaits(): boolean {
    return this.#runs.awaits
  }

  /** Whether it has runs that all wait for child runs. */
  get onlyAwaits(): boolean {
    return this.#runs.onlyAwaits
  }

  /** Whether it has runs for which no other run waits. */
  get hasOthers(): boolean {
    return this.#runs.hasOthers
  }

  get #isOpen(): boolean {
    return this.state === 'ready' && !this.#process.killed && !this.#isClogged && this.#pulse.isAwake
  }

  /** Too much waits for the child, or it does not answer. Runs wait meanwhile: the child may be replaced. */
  get #isClogged(): boolean {
    return this.#process.unread > MAX_UNREAD || this.#pulse.isQuiet
  }

  get idle(): boolean {
    return this.state === 'ready' && !this.#process.killed && this.#runs.size === 0
  }

  invoke(job: Job, input: Input, now: number): void {
    const { run, target, timeoutMs } = job.invocation
    const id = randomInt(MAX_ID)
    this.#begun++
    job.started = true
    job.invocation.onStart?.()
    let json: string
    try {
      json = JSON.stringify({ type: 'invoke', id, run, target, input })
      this.#process.sendJson(json)
    } catch (error) {
      const message = `Expected an input of at most ${MAX_FRAME} bytes of JSON: ${messageOf(error)}`
      return job.settle({ status: 'failed', error: { code: 'function_failed', message } })
    }
    const open = new OpenRun(job, {
      deadline: now + timeoutMs,
      outputBytes: this.#options.outputBytes,
      onAbort: () => this.#stop(id, 'cancelled', this.#now),
    })
    this.#runs.add(id, open)
    this.#now = now
    open.listen()
    if (this.#begun >= this.#options.replaceAfterRuns) this.drain()
  }

  /** Checks every deadline. The pool calls it each tick with monotonic milliseconds. */
  tick(now: number, elapsedMs: number): void {
    this.#now = now
    if (this.state === 'starting') {
      this.#startingMs += Math.min(elapsedMs, 2 * this.#options.tickMs) * cpuShare()
      if (this.#startingMs > this.#options.startMs)
        this.kill('worker_lost', `The process did not start within ${this.#options.startMs} ms`)
      return
    }
    this.#pass(elapsedMs)
    this.#intake.tick(elapsedMs)
    this.#watch(now, elapsedMs)
    const freed = this.#wasClogged && !this.#isClogged
    this.#wasClogged = this.#isClogged
    if (freed) this.#listener.onFreed(this)
  }

  /** The service may be as late as a run. So it reads what the child has sent before it judges a run by the time (C4). */
  #pass(elapsedMs: number): void {
    const { isFlooded } = this.#intake
    const { isChecking } = this.#process
    const isRead = (this.#intake.listening || isFlooded) && !isChecking
    const stalledMs = Math.max(0, elapsedMs - 2 * this.#options.tickMs)
    let isAnyDue = false
    for (const active of this.#runs.values()) {
      active.pass(elapsedMs, { stalledMs, isRead })
      isAnyDue ||= this.#isDue(active)
    }
    if (isAnyDue) setImmediate(() => this.#judge())
  }

  /** Whether its time, or its grace period, is over. */
  #isDue({ stopped, deadline, graceMs }: OpenRun): boolean {
    return stopped ? graceMs >= this.#options.graceMs : this.#now >= deadline
  }

  #judge(): void {
    for (const [id, active] of this.#runs.entries()) {
      if (!this.#isDue(active)) continue
      if (!active.stopped) this.#stop(id, 'timeout', this.#now)
      else if (!this.#isHeldUp(active)) this.#giveUp(active)
    }
  }

  /** Accepts no more runs and ends the child after the last one. */
  drain(): void {
    if (this.state !== 'ready') return
    this.state = 'draining'
    this.#listener.onDraining(this)
    this.#retireIfEmpty()
  }

  /** Ends the child after its last run. Meanwhile it accepts child runs, because its runs may wait for them. */
  yield(): void {
    this.isYielding = true
    this.#retireIfEmpty()
  }

  /** Ends the child without a backoff. */
  retire(reason = 'The process was shut down'): void {
    this.retired = true
    if (!this.#process.killed) this.#end.shutDown(reason)
    this.kill('worker_lost', reason)
  }

  kill(code: 'worker_lost' | 'unresponsive', message: string): void {
    this.#end.killFor({ code, message })
    if (code === 'unresponsive') this.#end.silentSince(this.#pulse.silentSince)
    this.#process.kill()
  }

  /** A large frame is masked in slices. What the child sends after it waits meanwhile. */
  #onFrame(frame: ChildFrame, size: number): void | Promise<void> {
    if (frame.type !== 'result' && frame.type !== 'host') return this.#takeMasked(frame, size)
    if (frame.type === 'host') this.#intake.charge(size)
    const masked = this.#given.inFrame(frame, size)
    return masked instanceof Promise
      ? masked.then((each) => this.#takeMasked(each, size))
      : this.#takeMasked(masked, size)
  }

  #takeMasked(frame: ChildFrame, size: number): void {
    try {
      this.#take(frame, size)
    } catch (error) {
      throw 'id' in frame ? blaming(error, frame.id) : error
    }
  }

  #take(frame: ChildFrame, size: number): void {
    switch (frame.type) {
      case 'ready':
        if (this.state !== 'starting') throw new ProtocolViolation('Expected `ready` only once, got it again')
        this.state = 'ready'
        this.wasReady = true
        this.readyAt = clock.monotonic()
        return this.#listener.onReady()
      case 'result':
        return this.#finish(frame.id, () => this.#succeeded(frame.value))
      case 'failure':
        return this.#finish(frame.id, () => ({
          status: 'failed',
          error: this.#given.inFailure(frame, size),
        }))
      case 'log': {
        this.#intake.charge(size)
        const active = this.#runs.demand(frame.id)
        return active.log(frame.source, this.#given.inOutput(frame, active.cutLines), this.#hold)
      }
      case 'host':
        return this.#serve(frame, size)
      case 'pong':
        return this.#onPong(frame)
      case 'fault': // the process may be inconsistent: its runs may finish, but no new run starts
        if (this.#faulty) throw new ProtocolViolation('Expected `fault` only once, got it again')
        this.#faulty = true
        return this.drain()
      case 'ending':
        this.#intake.charge(size)
        if (frame.id !== undefined) this.#runs.demand(frame.id)
        this.#end.endingBy(frame.id)
        return this.drain()
      default:
        throw new ProtocolViolation(`Expected a frame of a run, got ${frame.type}`)
    }
  }

  #succeeded(result: unknown): Outcome {
    if (!(result instanceof RawJson)) return { status: 'succeeded', result }
    return { status: 'succeeded', result, done: this.#intake.hold(result.bytes.length) }
  }

  /** The outcome is read after the check of the id: nobody would give back what is held for a result of no run (N3). */
  #finish(id: number, read: () => Outcome): void {
    const active = this.#runs.demand(id)
    const outcome = read()
    this.proven = true
    this.#runs.remove(id)
    active.unlisten()
    const final = active.stopped ? active.stopOutcome : outcome
    if (active.job.settled || final !== outcome) doneWith(outcome)
    if (active.stopped || active.calls.idle) active.job.settle(final)
    else void active.calls.settled().then(() => active.job.settle(final))
    if (this.#runs.size === 0) this.idleSince = this.#now
    this.#retireIfEmpty()
    this.#listener.onFreed(this)
  }

  #serve(call: Extract<ChildFrame, { type: 'host' }>, size: number): void {
    this.#replies.serve(this.#runs.demand(call.id), call, size)
  }

  #stop(id: number, reason: StopReason, at: number): void {
    const active = this.#runs.get(id)
    if (!active || active.stopped) return
    active.stopped = { reason, at }
    this.#process.send({ type: 'cancel', id, reason })
  }

  /** Whether the run may have exceeded its time because another run occupies the process. */
  #isHeldUp({ stopped }: OpenRun): boolean {
    return stopped?.reason === 'timeout' && this.#runs.size > 1 && this.#pulse.isQuiet
  }

  /** Settles a run that did not stop in time. The child must end, because its code may never end. */
  #giveUp(active: OpenRun): void {
    if (!active.job.settled) active.job.settle(active.stopOutcome)
    this.drain()
    const othersWait = [...this.#runs.values()].some(({ job }) => !job.settled)
    if (!othersWait || active.graceMs >= 2 * this.#options.graceMs) {
      this.retired = true
      if (!this.#process.killed) this.#end.giveUp(active)
      this.kill('worker_lost', 'The process was ended because another run in it did not stop in time')
    }
  }

  #watch(now: number, elapsedMs: number): void {
    const { heartbeatMs } = this.#options
    if (this.#intake.unreadMs >= heartbeatMs) return this.kill('unresponsive', UNREAD)
    const { idleSince } = this
    const listening = this.#intake.listening && !this.#process.isChecking
    const silence = this.#pulse.tick(now, elapsedMs, { runs: this.#runs.size, idleSince, listening })
    if (silence === 'restless' && this.idle) this.retire() // something continues in it
    else if (silence !== null)
      this.kill('unresponsive', `The process did not answer a ping within ${heartbeatMs} ms`)
  }

  #onPong(pong: Extract<ChildFrame, { type: 'pong' }>): void {
    const wasQuiet = this.#pulse.isQuiet
    const answered = this.#pulse.answer(pong.n)
    const condition = this.#condition.judge(pong)
    if (condition !== 'healthy') this.drain()
    if (condition === 'ending') this.retire('lost with a run that had ended, and whose code continued')
    if (answered === 'awake' || wasQuiet) this.#listener.onFreed(this)
    if (answered === 'resting' && this.idle) this.#pulse.freeze()
  }

  /** Thaws a frozen child. `onFreed` reports that it has room. Returns false if the child was not frozen. */
  wake(now: number): boolean {
    const isWaking = this.#pulse.wake(now)
    if (isWaking) this.idleSince = now
    return isWaking
  }

  #retireIfEmpty(): void {
    if ((this.state === 'draining' || this.isYielding) && this.#runs.size === 0) this.retire()
  }

  #onEnd(ending: Ending): void {
    this.state = 'ended'
    this.ending = ending.message
    const open = this.#runs.clear()
    this.#intake.end()
    this.#listener.onEnd(this) // first, so that no new run is sent to this child
    this.#end.settle(ending, open, this.#begun)
  }
}

const doneWith = (outcome: Outcome): void => {
  if (outcome.status === 'succeeded') outcome.done?.()
}
