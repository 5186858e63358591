import type { ActiveRun, CallSite } from '../../sdk/activeRun.ts'
import { isShallow, MAX_DEPTH, MAX_FRAME, MAX_MESSAGE } from '../frames.ts'
import type { CallError, FailureCode, ParentFrame, StopReason } from '../protocol.ts'
import type { HostCall, Kept, RunInfo } from '../../sdk/wire.ts'
import { CallQueue } from './callQueue.ts'
import { callSite, thrownAt, toUserError } from './callSite.ts'
import type { Channel as Pipe } from './channel.ts'
import { lossIn } from './jsonLosses.ts'
import { LineCutter } from './output.ts'
import { refused } from './refusals.ts'
import { clearTimersOf } from './timers.ts'
import type { Described } from './thrown.ts'

/** Maximum bytes of a function's result as JSON; the rest of the frame is for its other fields. */
const MAX_RESULT = (MAX_FRAME / 4) * 3

/** Values in a result: each has at least two bytes of JSON. */
const MAX_VALUES = MAX_RESULT / 2

const { parse, stringify } = JSON

/** Throws for a value that would arrive as another one. What is nested too deep is refused as JSON. */
const demandJson = (request: HostCall, site: CallSite): void => {
  const [root, value] = givenIn(request)
  const loss = lossIn(value, { root, maxDepth: MAX_DEPTH, maxValues: MAX_VALUES })
  if (!loss) return
  const message = `Expected ${request.op}() with JSON: ${loss.path} is ${loss.reason}`
  throw thrownAt(new TypeError(message.slice(0, MAX_MESSAGE)), site)
}

/** The value of user code in a request, with its name in a path. */
const givenIn = (request: HostCall): readonly [root: string, value: unknown] => {
  switch (request.op) {
    case 'emit':
      return ['payload', request.payload]
    case 'send':
      return ['data', request.event_data]
    case 'call':
    case 'run':
      return ['args', request.args]
    default:
      return ['params', undefined]
  }
}

type Channel = Pick<Pipe, 'send' | 'sendJson'>
type Invoke = Extract<ParentFrame, { type: 'invoke' }>
type Reply = Extract<ParentFrame, { type: 'reply' }>

interface Pending {
  readonly site: CallSite
  readonly queue: CallQueue | undefined
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
}

/** The error of a host call that the run did not await. */
const tooLate = (): Error =>
  refused(new Error('The run has ended: expected svc functions to be awaited before it returns'))

/** A thing that learns of the end of a run. */
interface Held {
  release(run: Run): void
}

/** A run in the child. It ends once; anything after its end is dropped. */
export class Run implements ActiveRun {
  /** The number of runs that have ended in this process. */
  static endings = 0
  /** Counts the pings of the service. */
  static period = 0
  readonly id: number
  readonly info: RunInfo
  readonly #channel: Channel
  readonly #outputBytes: number
  readonly #onEnd: () => void
  #controller: AbortController | undefined
  #output: LineCutter | undefined
  #calls = 0
  readonly #pending = new Map<number, Pending>()
  readonly #queued = new CallQueue()
  /** Apart from the others, which would wait for child runs to end. */
  readonly #childRuns = new CallQueue()
  readonly timers = new Set<NodeJS.Timeout | NodeJS.Immediate>()
  /** Created on first use, because most functions open no connection. */
  #held: Set<Held> | undefined
  /** The errors of host calls that an outage of the service refused. */
  #outages: WeakSet<object> | undefined
  #ended = false
  /** The period in which it ended. */
  #endedIn: number | undefined
  #stopped: Error | undefined

  constructor(
    { id, run }: Pick<Invoke, 'id' | 'run'>,
    channel: Channel,
    outputBytes: number,
    onEnd: () => void,
  ) {
    this.id = id
    this.info = run
    this.#channel = channel
    this.#outputBytes = outputBytes
    this.#onEnd = onEnd
  }

  get ended(): boolean {
    return this.#ended
  }

  get isStopped(): boolean {
    return this.#stopped !== undefined
  }

  /** Whether it ended two periods ago. It had the time between two pings to finish its last callbacks. */
  get isLeftover(): boolean {
    return this.#endedIn !== undefined && Run.period - this.#endedIn >= 2
  }

  /** Created on first use, because most functions never use it. */
  get signal(): AbortSignal {
    return (this.#controller ??= new AbortController()).signal
  }

  /** Releases the thing at the end of the run. */
  hold(thing: Held): void {
    ;(this.#held ??= new Set()).add(thing)
  }

  drop(thing: Held): void {
    this.#held?.delete(thing)
  }

  /** Throws if the run was stopped, or has failed while its module was loading, before its function was called. */
  throwIfStopped(): void {
    if (this.#stopped) throw this.#stopped
    if (this.#ended) throw new Error('The run has ended')
  }

  get output(): LineCutter {
    this.#output ??= new LineCutter(this.#outputBytes, (source, text) =>
      this.#channel.send({ type: 'log', id: this.id, source, text }),
    )
    return this.#output
  }

  siteOf(callee: (...args: never[]) => unknown): CallSite {
    return callSite(callee)
  }

  // oxlint-disable-next-line typescript/unbound-method -- it is only compared with the frames
  request(request: HostCall, site: CallSite = callSite(Run.prototype.request)): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#ended) throw tooLate()
      demandJson(request, site)
      const json = stringify(request) // now, because its values may change while it waits
      if (!isShallow(json))
        throw new RangeError(`Expected a call nested at most ${MAX_DEPTH} levels deep, with its values`)
      const pending = { site, queue: this.#queueFor(request), resolve, reject }
      const send = this.#sending(json, pending)
      if (pending.queue) pending.queue.add({ send, reject })
      else send()
    })
  }

  /** A read of a file has its turn in the process, so it does not wait here: the reads of other runs would wait with it. */
  #queueFor(request: HostCall): CallQueue | undefined {
    if (request.op === 'run') return this.#childRuns
    const isRead = request.op === 'files' && (request.action === 'get' || request.action === 'read')
    return isRead ? undefined : this.#queued
  }

  /** Of a call that waits, only its text is in memory. */
  #sending(json: string, pending: Pending): () => boolean {
    return () => {
      try {
        if (this.#ended) throw tooLate() // in its toJSON
        const call = this.#calls
        this.#channel.sendJson(`{"type":"host","id":${this.id},"call":${call},"request":${json}}`)
        this.#calls++ // a call that is refused here has no number: the service expects them without a gap
        this.#pending.set(call, pending)
        return true
      } catch (error) {
        pending.reject(error as Error)
        return false
      }
    }
  }

  /** Fetches the bytes of a kept value. */
  async fetch({ handle, size }: Kept): Promise<Buffer> {
    const bytes = Buffer.allocUnsafe(size)
    for (let from = 0; from < size;) {
      const chunk = (await this.request({ op: 'payload', handle, from })) as string
      const written = bytes.write(chunk, from, 'base64')
      if (written === 0) throw new Error(`Expected ${size} bytes of a value, got ${from}`)
      from += written
    }
    return bytes
  }

  onReply({ call, value, kept, error }: Reply): void {
    const pending = this.#pending.get(call)
    if (!pending) return
    this.#pending.delete(call)
    if (error) pending.reject(thrownAt(this.#errorOf(error), pending.site))
    else pending.resolve(kept ? this.fetch(kept).then((bytes) => parse(bytes.toString()) as unknown) : value)
    pending.queue?.replied()
  }

  /** Whether the function failed with the error of a host call that an outage refused. */
  isOutage(thrown: unknown): boolean {
    return typeof thrown === 'object' && thrown !== null && (this.#outages?.has(thrown) ?? false)
  }

  #errorOf(given: CallError): Error {
    const error = toUserError(given)
    if (given.code === 'unavailable') (this.#outages ??= new WeakSet()).add(error)
    return error
  }

  /** Asks user code to stop: its signal aborts, and its host calls reject, also those that wait. Later ones are made. */
  stop(reason: StopReason): void {
    const error = refused(new Error(reason === 'timeout' ? 'The run timed out' : 'The run was cancelled'))
    error.name = 'AbortError'
    this.#stopped = error
    this.#rejectCalls(error) // before the signal: its listeners may make calls
    this.#controller ??= new AbortController()
    this.#controller.abort(error)
  }

  /**
   * Rejects its host calls without a reply, because none arrives after its end. Another run may wait for one: in the turn of
   * `files.get`, or for a value that a module keeps.
   */
  abandonCalls(): void {
    if (this.#pending.size > 0) this.#rejectCalls(tooLate())
  }

  #rejectCalls(error: Error): void {
    for (const { reject } of this.#pending.values()) reject(error)
    this.#pending.clear()
    for (const queue of [this.#queued, this.#childRuns]) queue.clear(error)
  }

  succeed(value: unknown): void {
    if (this.#ended) return
    let json: string | undefined
    try {
      const loss = lossIn(value, { root: 'result', maxDepth: MAX_DEPTH, maxValues: MAX_VALUES })
      if (loss) return this.#refuseResult(`${loss.path} is ${loss.reason}`)
      json = stringify(value) ?? 'null' // a function or undefined
      if (!isShallow(json)) throw new RangeError(`it nests more than ${MAX_DEPTH} levels deep`)
    } catch (error) {
      return this.#refuseResult(error instanceof Error ? error.message : 'toJSON threw')
    }
    const size = Buffer.byteLength(json)
    if (size > MAX_RESULT) {
      return this.fail('result_too_large', {
        message: `Expected a result of at most ${MAX_RESULT} bytes of JSON, got ${size}`,
      })
    }
    this.#end(`{"type":"result","id":${this.id},"value":${json}}`)
  }

  #refuseResult(reason: string): void {
    const message = `Expected a result that can be converted to JSON: ${reason}`
    this.fail('result_not_serializable', { message: message.slice(0, MAX_MESSAGE) })
  }

  fail(code: FailureCode, { message, stack, ...details }: Described): void {
    if (!this.#ended) this.#end(stringify({ type: 'failure', id: this.id, code, message, stack, details }))
  }

  #end(json: string): void {
    for (const queue of [this.#queued, this.#childRuns]) queue.flush() // the service waits for these host calls too
    this.#output?.end()
    this.#ended = true
    this.#endedIn = Run.period
    Run.endings++
    if (this.timers.size > 0) clearTimersOf(this)
    this.#channel.sendJson(json)
    if (this.#held) for (const thing of this.#held) thing.release(this)
    this.#onEnd()
  }
}
