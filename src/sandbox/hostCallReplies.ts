import { messageOf } from '../errors.ts'
import { KeptJson } from '../events/rawJson.ts'
import type { RunError } from '../events/run.ts'
import type { HostCall, Kept } from '../sdk/wire.ts'
import type { SandboxedProcess } from './childProcess.ts'
import type { GivenValues } from './givenValues.ts'
import { errorOfHostCall } from './hostCalls.ts'
import { type HeldCall, type Intake, MAX_UNREAD_EVER } from './intake.ts'
import type { OpenRun } from './openRun.ts'
import type { CallError, ChildFrame, ParentFrame } from './protocol.ts'

const TOO_MANY_VALUES: RunError = {
  code: 'unavailable',
  message: 'context(key): the process has read too many different values; try again in another run',
}

const STOPPED: CallError = { code: 'cancelled', message: 'The run was stopped' }

interface Deps {
  readonly process: SandboxedProcess
  readonly intake: Intake
  readonly given: GivenValues
  /** Whether the child can still receive replies for a run. */
  readonly isOpen: (id: number) => boolean
  /** Counts the child runs that a run waits for. */
  readonly awaiting: (active: OpenRun, more: 1 | -1) => void
  /** The child is to accept no more runs. */
  readonly drain: () => void
  /** The child does not read its replies. */
  readonly onUnread: () => void
}

/** Serves the host calls of the runs in a child, and sends the replies. */
export class HostCallReplies {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** `size`: bytes of the frame of the call. */
  serve(active: OpenRun, { id, call, request }: Extract<ChildFrame, { type: 'host' }>, size: number): void {
    const { isOpen, awaiting } = this.#deps
    active.calls.begin(call)
    if (active.job.settled) return this.#refuse({ id, call }, STOPPED)
    // The functions below outlive the request, which may be large: they use its parts only.
    const isRun = request.op === 'run'
    const isContext = request.op === 'context'
    let held: HeldCall
    try {
      held = this.#hold(active, request, size)
    } catch (error) {
      return this.#refuse({ id, call }, errorOfHostCall(error))
    }
    const { turn, release, done } = held
    if (isRun) awaiting(active, 1)
    const reply = (answer: { value: unknown } | { kept: Kept } | { error: CallError }) => {
      if (isOpen(id)) {
        if (isRun) awaiting(active, -1)
        this.#reply({ type: 'reply', id, call, ...answer })
      }
      done()
    }
    active.calls.serve(request, { turn, onRequested: release }).then(
      (value) => {
        if (isContext && !this.#remember(value)) return reply({ error: TOO_MANY_VALUES })
        reply(value instanceof KeptJson ? { kept: value } : { value })
      },
      (error: unknown) => reply({ error: errorOfHostCall(error) }),
    )
  }

  #hold({ job }: OpenRun, request: HostCall, size: number): HeldCall {
    const { intake } = this.#deps
    if (request.op === 'run') return intake.takeAwaiting(size)
    return intake.take(size, job.invocation.untilAllowed?.(request) ?? null)
  }

  #refuse({ id, call }: { id: number; call: number }, error: CallError): void {
    if (this.#deps.isOpen(id)) this.#reply({ type: 'reply', id, call, error })
  }

  #reply(frame: Extract<ParentFrame, { type: 'reply' }>): void {
    const { process, onUnread } = this.#deps
    try {
      process.send(frame)
    } catch (error) {
      const { id, call } = frame
      const tooLarge = { code: 'payload_too_large', message: messageOf(error) }
      process.send({ type: 'reply', id, call, error: tooLarge })
    }
    if (process.unread > MAX_UNREAD_EVER) onUnread()
  }

  /** The child is about to get this value of context. Returns false if it has too many. */
  #remember(value: unknown): boolean {
    const { given, drain } = this.#deps
    const isKnown = given.add(value)
    if (given.isHalfFull) drain()
    return isKnown
  }
}
