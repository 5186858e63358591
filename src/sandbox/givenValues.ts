import type { ErrorDetails, RunError } from '../events/run.ts'
import type { HostCall } from '../sdk/wire.ts'
import { completed } from '../events/rawJson.ts'
import { values } from '../loops/slices.ts'
import type { Intake } from './intake.ts'
import { SLICED_BYTES } from './frameOrder.ts'
import { MAX_LINE, MAX_MESSAGE, MAX_STACK } from './frames.ts'
import { Masking, type Unfinished } from './masking.ts'
import type { ChildFrame } from './protocol.ts'

type Failure = Extract<ChildFrame, { type: 'failure' }>

type WithValue = Extract<ChildFrame, { type: 'result' | 'host' }>

type Log = Pick<Extract<ChildFrame, { type: 'log' }>, 'source' | 'text'>

/** The secrets that may continue in the next piece of a long line, by the stream of the line. */
export type CutLines = Partial<Record<Log['source'], Unfinished | undefined>>

/** The search for secrets in a frame counts as this many times its bytes. */
const MASKING_COST = 4

/**
 * The values of context that one child was given: they are masked in what it sends.
 * G1: a value is masked from before the child receives it. G2: the search counts against the intake of the child.
 */
export class GivenValues {
  readonly #intake: Intake
  /** Undefined while there are none. */
  #masking: Masking | undefined

  constructor(intake: Intake) {
    this.#intake = intake
  }

  /** The child is about to get this value (G1). Returns false if it has too many. */
  add(value: unknown): boolean {
    if (typeof value !== 'string') return true
    this.#masking ??= new Masking()
    return this.#masking.add(value)
  }

  /** Whether the child should be replaced before it has too many values. */
  get isHalfFull(): boolean {
    return this.#masking?.isHalfFull ?? false
  }

  /** Masks the values in a frame of `size` bytes: those of a large one in slices (G2). */
  inFrame<Frame extends WithValue>(frame: Frame, size: number): Frame | Promise<Frame> {
    if (!this.#masking || !hasJson(frame)) return frame
    this.#intake.charge(MASKING_COST * size)
    const steps = inFrame(this.#masking, frame) as Generator<void, Frame>
    return size > SLICED_BYTES ? values.complete(steps) : completed(steps)
  }

  inText(text: string): string {
    return this.#masking ? this.#masking.text(text) : text
  }

  /** A line of output, or a piece of one: the child cuts long lines, and a value may be in several pieces. */
  inOutput({ source, text }: Log, cut: CutLines): string {
    if (!this.#masking) return text
    const isCut = text.length >= MAX_LINE - 1 // the child cuts no character in two
    const masked = this.#masking.piece(text, { before: cut[source], isCut })
    cut[source] = masked.unfinished
    return masked.text
  }

  /** The same for a text that the child may have cut. */
  #inCutText(text: string): string {
    return this.#masking ? this.#masking.cutText(text) : text
  }

  /** The error of a failed run, with texts of the allowed length. */
  inFailure({ code, message, stack, details }: Failure, size: number): RunError {
    return {
      code,
      message: this.#inCutText(message.slice(0, MAX_MESSAGE)),
      ...(stack !== undefined && { stack: this.#inCutText(stack.slice(0, MAX_STACK)) }),
      ...(details && this.#inDetails(details, size)),
    }
  }

  /** Lines and columns remain, also if such a number is a value. */
  #inDetails(details: ErrorDetails, size: number): ErrorDetails {
    if (!this.#masking) return details
    const { location, ...rest } = details
    this.#intake.charge(MASKING_COST * size)
    const masked = this.#masking.json(rest, (text) => this.#inCutText(text)) as typeof rest
    if (!location) return masked
    const { line, column } = location
    const texts = this.#masking.json(location) as typeof location
    return { ...masked, location: { ...texts, line, column } }
  }
}

/** Names of functions, keys and content of files remain: masking would change their meaning. */
const hasJson = (frame: WithValue): boolean =>
  frame.type === 'result' || ['emit', 'send', 'call', 'run'].includes(frame.request.op)

function* inFrame(masking: Masking, frame: WithValue): Generator<void, WithValue> {
  return frame.type === 'result'
    ? { ...frame, value: yield* masking.jsonSteps(frame.value) }
    : { ...frame, request: yield* inCall(masking, frame.request) }
}

function* inCall(masking: Masking, request: HostCall): Generator<void, HostCall> {
  switch (request.op) {
    case 'emit':
      return {
        ...request,
        data_type: masking.text(request.data_type),
        payload: yield* masking.jsonSteps(request.payload),
      }
    case 'send':
      return {
        ...request,
        event_type: masking.text(request.event_type),
        event_data: yield* masking.jsonSteps(request.event_data),
      }
    case 'call':
    case 'run':
      return { ...request, args: (yield* masking.jsonSteps(request.args)) as typeof request.args }
    default:
      return request
  }
}
