import type { ErrorDetails, RunError } from '../events/run.ts'
import type { HostCall } from '../sdk/wire.ts'
import type { Intake } from './intake.ts'
import { MAX_LINE, MAX_MESSAGE, MAX_STACK } from './frames.ts'
import { Masking, type Unfinished } from './masking.ts'
import type { ChildFrame } from './protocol.ts'

type Failure = Extract<ChildFrame, { type: 'failure' }>

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

  /** Masks any JSON value that came in a frame of `size` bytes (G2). */
  inJson(value: unknown, size: number): unknown {
    if (!this.#masking) return value
    this.#intake.charge(MASKING_COST * size)
    return this.#masking.json(value)
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

  /** Names of functions, keys and content of files remain: masking would change their meaning. */
  inCall(request: HostCall, size: number): HostCall {
    if (!this.#masking) return request
    switch (request.op) {
      case 'emit':
        return {
          ...request,
          data_type: this.inText(request.data_type),
          payload: this.inJson(request.payload, size),
        }
      case 'send':
        return {
          ...request,
          event_type: this.inText(request.event_type),
          event_data: this.inJson(request.event_data, size),
        }
      case 'call':
      case 'run':
        return { ...request, args: this.inJson(request.args, size) as typeof request.args }
      default:
        return request
    }
  }
}
