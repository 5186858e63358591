import type { ErrorDetails, RunError, Target } from '../events/run.ts'
import { completed, looseSteps, RawJson } from '../events/rawJson.ts'
import { errorDetails } from './errorDetails.ts'
import { blaming, isShallow, MAX_DEPTH, ProtocolViolation } from './frames.ts'
import { FILE_ACTIONS, type HostCall, type Input, type Kept, type RunInfo } from '../sdk/wire.ts'

/** The reason for a request to stop a run. */
export type StopReason = 'timeout' | 'cancelled'

/**
 * Frames from the service to a child. `id` numbers a run within its child, `call` a host call within its run.
 * `init` is first and is sent once. A child that receives `strip` or `inspect` receives no other frame.
 */
export type ParentFrame =
  | {
      readonly type: 'init'
      readonly dir: string
      readonly outputBytes: number
      /** The child will receive a task of a build, and loads its code meanwhile. */
      readonly forTask?: true
    }
  | {
      readonly type: 'invoke'
      readonly id: number
      readonly run: RunInfo
      readonly target: Target
      readonly input: Input
    }
  | { readonly type: 'cancel'; readonly id: number; readonly reason: StopReason }
  | {
      readonly type: 'reply'
      readonly id: number
      readonly call: number
      readonly value?: unknown
      /** In place of `value`. */
      readonly kept?: Kept
      readonly error?: CallError
    }
  | { readonly type: 'ping'; readonly n: number }
  | {
      readonly type: 'inspect'
      /** The time in which the whole build must be loaded. */
      readonly withinMs: number
    }
  | { readonly type: 'strip' }

/** The error of a host call. */
export interface CallError {
  readonly code: string
  readonly message: string
  /** Of a child run that failed: its id and its error. */
  readonly run_id?: string
  readonly failure?: RunError
}

/** Error codes of failed runs that a child may report. */
export const FAILURE_CODES = [
  'function_failed',
  'unavailable',
  'load_failed',
  'function_not_found',
  'result_not_serializable',
  'result_too_large',
] as const
export type FailureCode = (typeof FAILURE_CODES)[number]

/** An exported function of an inspected module; its metadata is not checked yet. */
export interface RawFunction {
  readonly var: string
  readonly metadata?: unknown
}

/**
 * Frames from a child. User code can write to the same pipe, so each frame is checked on receipt.
 * `fault` reports an error that user code threw outside any awaited call. `ending` comes from code that ends the
 * process; it has no id if the run of that code has ended. `loading`, `module`, `stripped` and `done` belong to
 * `inspect` and `strip`: the current file, the results and the end.
 */
export type ChildFrame =
  | { readonly type: 'ready' }
  | { readonly type: 'result'; readonly id: number; readonly value: unknown }
  | {
      readonly type: 'failure'
      readonly id: number
      readonly code: FailureCode
      readonly message: string
      readonly stack?: string
      readonly details?: ErrorDetails
    }
  | { readonly type: 'host'; readonly id: number; readonly call: number; readonly request: HostCall }
  | { readonly type: 'log'; readonly id: number; readonly source: 'stdout' | 'stderr'; readonly text: string }
  | {
      readonly type: 'pong'
      readonly n: number
      readonly rss: number
      /** The share of the time in which code of ended runs was executed, or native work was done for them, in thousandths. */
      readonly leftover: number
    }
  | { readonly type: 'fault' }
  | { readonly type: 'ending'; readonly id?: number }
  | { readonly type: 'loading'; readonly file: string }
  | {
      readonly type: 'module'
      readonly ns: string
      readonly file: string
      readonly functions: readonly RawFunction[]
      /** Functions within exported objects, such as `default.fetch`: nothing can start them. Absent if there are none. */
      readonly unused?: readonly string[]
    }
  | { readonly type: 'stripped'; readonly file: string; readonly code: string }
  | { readonly type: 'done'; readonly error?: string }

/** Parses a frame and checks each field. Throws `ProtocolViolation` for anything else. */
export const parseChildFrame = (json: string): ChildFrame => {
  if (!isShallow(json, MAX_DEPTH + 1))
    throw new ProtocolViolation(`Expected members of a frame nested at most ${MAX_DEPTH} levels deep`)
  let frame: unknown
  try {
    frame = JSON.parse(json)
  } catch (cause) {
    throw invalid(cause)
  }
  return checked(frame)
}

/** Parses a large frame: its large values remain text (`RawJson`), so that no frame needs more memory than its bytes. */
export const parseLargeChildFrame = (bytes: Buffer): ChildFrame => completed(largeFrameSteps(bytes))

/** The same in steps, between which other work can continue. */
export function* largeFrameSteps(bytes: Buffer): Generator<void, ChildFrame> {
  let frame: unknown
  try {
    frame = yield* looseSteps(bytes, ['request', 'params'])
  } catch (cause) {
    throw invalid(cause)
  }
  return checked(frame)
}

const invalid = (cause: unknown): ProtocolViolation =>
  new ProtocolViolation('Expected a frame of valid JSON', { cause })

const checked = (frame: unknown): ChildFrame => {
  if (!isObject(frame)) throw new ProtocolViolation(`Expected a frame to be an object, got ${shown(frame)}`)
  try {
    return frameOf(frame)
  } catch (error) {
    throw blaming(error, frame.id)
  }
}

const frameOf = (frame: Fields): ChildFrame => {
  switch (frame.type) {
    case 'result':
      return { type: 'result', id: count(frame, 'id'), value: frame.value }
    case 'host':
      return {
        type: 'host',
        id: count(frame, 'id'),
        call: count(frame, 'call'),
        request: hostCall(frame.request),
      }
    case 'log':
      return { type: 'log', id: count(frame, 'id'), source: source(frame), text: text(frame, 'text') }
    case 'failure': {
      const failure = { id: count(frame, 'id'), code: failureCode(frame), message: text(frame, 'message') }
      return {
        type: 'failure',
        ...failure,
        ...(frame.stack !== undefined && { stack: text(frame, 'stack') }),
        ...(frame.details !== undefined && { details: errorDetails(frame.details) }),
      }
    }
    case 'pong':
      return {
        type: 'pong',
        n: count(frame, 'n'),
        rss: count(frame, 'rss'),
        leftover: count(frame, 'leftover'),
      }
    case 'ready':
    case 'fault':
      return { type: frame.type }
    case 'ending':
      return frame.id === undefined ? { type: 'ending' } : { type: 'ending', id: count(frame, 'id') }
    case 'loading':
      return { type: 'loading', file: text(frame, 'file') }
    case 'module':
      return {
        type: 'module',
        ns: text(frame, 'ns'),
        file: text(frame, 'file'),
        functions: rawFunctions(frame),
        ...(frame['unused'] !== undefined && { unused: texts(frame['unused']) }),
      }
    case 'stripped':
      return { type: 'stripped', file: text(frame, 'file'), code: text(frame, 'code') }
    case 'done':
      return frame.error === undefined ? { type: 'done' } : { type: 'done', error: text(frame, 'error') }
    default:
      throw new ProtocolViolation(`Expected a known frame type, got ${shown(frame.type)}`)
  }
}

type Fields = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof RawJson)

const count = (fields: Fields, name: string): number => {
  const value = fields[name]
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value
  throw new ProtocolViolation(`Expected \`${name}\` to be a whole number from 0, got ${shown(value)}`)
}

const text = (fields: Fields, name: string): string => {
  const value = textIn(fields[name])
  if (typeof value === 'string') return value
  throw new ProtocolViolation(`Expected \`${name}\` to be a string, got ${shown(value)}`)
}

/** A large text needs no more memory as a string. */
const textIn = (value: unknown): unknown => (value instanceof RawJson && value.isText ? value.parse() : value)

const source = ({ source }: Fields): 'stdout' | 'stderr' => {
  if (source === 'stdout' || source === 'stderr') return source
  throw new ProtocolViolation(`Expected \`source\` to be stdout or stderr, got ${shown(source)}`)
}

const failureCode = ({ code }: Fields): FailureCode => {
  const known = FAILURE_CODES.find((each) => each === code)
  if (known) return known
  throw new ProtocolViolation(`Expected a known failure code, got ${shown(code)}`)
}

/** Bytes of JSON of the functions of one module: they are parsed, and can need twenty times as much memory. */
const MAX_FUNCTIONS = 2 << 20

const rawFunctions = ({ functions: given }: Fields): RawFunction[] => {
  const functions = given instanceof RawJson && given.bytes.length <= MAX_FUNCTIONS ? given.parse() : given
  if (!Array.isArray(functions))
    throw new ProtocolViolation(`Expected \`functions\` to be a list, got ${shown(functions)}`)
  return functions.map((each: unknown) => {
    if (!isObject(each))
      throw new ProtocolViolation(`Expected a function to be an object, got ${shown(each)}`)
    return { var: text(each, 'var'), metadata: each.metadata }
  })
}

const texts = (value: unknown): readonly string[] => {
  if (Array.isArray(value)) return value.filter((each) => typeof each === 'string')
  throw new ProtocolViolation(`Expected a list of texts, got ${shown(value)}`)
}

const hostCall = (request: unknown): HostCall => {
  if (!isObject(request))
    throw new ProtocolViolation(`Expected \`request\` to be an object, got ${shown(request)}`)
  const { op } = request
  switch (op) {
    case 'emit':
      return { op, data_type: text(request, 'data_type'), payload: request.payload }
    case 'send':
      return {
        op,
        event_type: text(request, 'event_type'),
        event_data: request.event_data,
        ...keyIn(request),
      }
    case 'call':
      return { op, ...calledIn(request), ...keyIn(request) }
    case 'run':
      return { op, ...calledIn(request) }
    case 'context':
      return { op, key: text(request, 'key') }
    case 'payload':
      return { op, handle: count(request, 'handle'), from: count(request, 'from') }
    case 'files': {
      const { action, params } = request
      const known = FILE_ACTIONS.find((each) => each === action)
      if (!known)
        throw new ProtocolViolation(
          `Expected \`action\` to be one of ${FILE_ACTIONS.join(', ')}, got ${shown(action)}`,
        )
      if (!isObject(params))
        throw new ProtocolViolation(`Expected \`params\` to be an object, got ${shown(params)}`)
      return { op, action: known, params: withText(params) }
    }
    default:
      throw new ProtocolViolation(`Expected a known host call, got ${shown(op)}`)
  }
}

const calledIn = (request: Fields) => {
  if (!isList(request['args']))
    throw new ProtocolViolation(`Expected \`args\` to be a list, got ${shown(request['args'])}`)
  return { fn: text(request, 'fn'), args: request['args'] }
}

const keyIn = (request: Fields): { readonly idempotency_key?: string } =>
  request['idempotency_key'] === undefined ? {} : { idempotency_key: text(request, 'idempotency_key') }

const withText = (params: Fields): Fields =>
  params['content_base64'] instanceof RawJson
    ? { ...params, content_base64: textIn(params['content_base64']) }
    : params

const isList = (value: unknown): value is readonly unknown[] | RawJson =>
  value instanceof RawJson ? value.isList : Array.isArray(value)

/** The received value, short enough for a log. */
const shown = (value: unknown): string =>
  value instanceof RawJson
    ? value.bytes.toString('utf8', 0, 80)
    : (JSON.stringify(value) ?? String(value)).slice(0, 80)
