import { messageOf } from '../errors.ts'
import { KeptJson } from '../events/rawJson.ts'
import type { RunError } from '../events/run.ts'
import type { Kept } from '../sdk/wire.ts'
import type { SandboxedProcess } from './childProcess.ts'
import type { GivenValues } from './givenValues.ts'
import { errorOfHostCall } from './hostCalls.ts'
import { type Intake, MAX_UNREAD_EVER } from './intake.ts'
import type { OpenRun } from './openRun.ts'
import type { CallError, ChildFrame, ParentFrame } from './protocol.ts'

const TOO_MANY_VALUES: RunError = {
  code: 'unavailable',
  message: 'context(key): the process has read too many different values; try again in another run',
}

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
    const { intake, isOpen, awaiting } = this.#deps
    active.calls.begin(call)
    const isRun = request.op === 'run'
    const { turn, done } = intake.take(size, { isExempt: isRun })
    if (isRun) awaiting(active, 1)
    const reply = (answer: { value: unknown } | { kept: Kept } | { error: CallError }) => {
      if (isOpen(id)) {
        if (isRun) awaiting(active, -1)
        this.#reply({ type: 'reply', id, call, ...answer })
      }
      done()
    }
    if (active.job.settled) return reply({ error: { code: 'cancelled', message: 'The run was stopped' } })
    active.calls.serve(request, turn).then(
      (value) => {
        if (request.op === 'context' && !this.#remember(value)) return reply({ error: TOO_MANY_VALUES })
        reply(value instanceof KeptJson ? { kept: value } : { value })
      },
      (error: unknown) => reply({ error: errorOfHostCall(error) }),
    )
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
