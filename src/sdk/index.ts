/**
 * The module `svc`, for the functions of a build. All functions except `fn` throw if they are called outside a
 * run. Data is durable when the promise of its call resolves. It is stored in the order of the calls if each is awaited; calls
 * that are not awaited may overtake each other if one has a large value or if more than 100 of them wait.
 */
import type { ArgumentsOf, DataArgument, Named, ResultOf } from './typed.ts'
import type { RunInfo } from './wire.ts'
import { activeRun } from './activeRun.ts'

export { files, type FileInfo } from './files.ts'
export type { Event, Tick, WebhookRequest, WebhookResponse } from './input.ts'
export {
  fn,
  type Mcp,
  type Metadata,
  type Retry,
  type Schedule,
  type Verify,
  type Webhook,
} from './metadata.ts'
export type { HandledData } from './typed.ts'

/** The functions of the project by reference, which the project declares. While it is empty, every reference is allowed. */
export interface Functions {}

/** The data of the events of the project by type, which the project declares. While it is empty, every type is allowed. */
export interface Events {}

/** Events that control the service. */
interface ControlEvents {
  readonly 'svc:call': { readonly fn: string; readonly args?: readonly unknown[]; readonly project?: string }
  readonly 'svc:cancel': { readonly run_id: string }
  readonly 'svc:replay': { readonly run_id: string }
}

/** Options of `send` and `callWith`. */
export interface StartOptions {
  /**
   * 1 to 255 visible ASCII characters. For 24 hours, a repetition with the same key in any run of the project has no effect
   * and the same reply. A key of other data rejects with code `idempotency_key_reused`.
   */
  readonly idempotencyKey?: string
}

interface Send {
  <Type extends keyof ControlEvents>(
    type: Type,
    data: ControlEvents[Type],
    options?: StartOptions,
  ): Promise<{ readonly event_id: string }>
  <Type extends string>(
    type: Named<Events, Type>,
    ...rest: [...DataArgument<Events, Type>, options?: StartOptions]
  ): Promise<{ readonly event_id: string }>
}

type RunTyped = <Ref extends string>(
  ref: Named<Functions, Ref>,
  ...args: ArgumentsOf<Functions, Ref>
) => Promise<ResultOf<Functions, Ref>>

/** While `Functions` is empty: any reference, with the type of its result. */
type RunUntyped = <Result = unknown>(ref: string, ...args: readonly unknown[]) => Promise<Result>

type Run = keyof Functions extends never ? RunUntyped : RunTyped

/** Publishes an event on the run's stream. */
export const send: Send = async (
  type: string,
  data?: unknown,
  options?: StartOptions,
): Promise<{ readonly event_id: string }> => {
  const signature = 'send(type, data, options)'
  checkText(signature, 'type', type)
  const key = keyOf(signature, options)
  const event = { event_type: type, event_data: data ?? null }
  return (await activeRun('send').request({ op: 'send', ...event, ...key })) as { event_id: string }
}

/** Starts a function as a background run. `ref` is `ns/var`, for example `orders.handlers/onCreated`. */
export const call = async <Ref extends string>(
  ref: Named<Functions, Ref>,
  ...args: ArgumentsOf<Functions, Ref>
): Promise<{ readonly run_id: string }> => {
  checkRef('call', ref)
  return (await activeRun('call').request({ op: 'call', fn: ref, args })) as { run_id: string }
}

/** As `call`, with its arguments as a list and with options. */
export const callWith = async <Ref extends string>(
  ref: Named<Functions, Ref>,
  args: ArgumentsOf<Functions, Ref>,
  options?: StartOptions,
): Promise<{ readonly run_id: string }> => {
  checkRef('callWith', ref)
  const signature = 'callWith(ref, args, options)'
  if (!Array.isArray(args))
    throw new TypeError(`Expected \`args\` of ${signature} to be a list, got ${shown(args)}`)
  const key = keyOf(signature, options)
  return (await activeRun('callWith').request({ op: 'call', fn: ref, args, ...key })) as { run_id: string }
}

/** Runs a function as a child run. Resolves with its result as JSON, and rejects when it fails. */
export const run: Run = async <Result>(ref: string, ...args: readonly unknown[]): Promise<Result> => {
  checkRef('run', ref)
  return (await activeRun('run').request({ op: 'run', fn: ref, args })) as Result
}

/** Sends live data to the subscribers of the run's stream, as `stream:data`. */
export const emit = async (dataType: string, payload: unknown = null): Promise<void> => {
  checkText('emit(dataType, payload)', 'dataType', dataType)
  await activeRun('emit').request({ op: 'emit', data_type: dataType, payload })
}

/** Returns the decrypted value of a context variable of the run's project. Rejects with code `not_found`. */
export const context = async (key: string): Promise<string> => {
  checkText('context(key)', 'key', key)
  return (await activeRun('context').request({ op: 'context', key })) as string
}

/** Returns the current run. `signal` aborts when the run is cancelled or times out. */
export const currentRun = (): RunInfo & { readonly signal: AbortSignal } => {
  const { info, signal } = activeRun('currentRun')
  return { ...info, signal }
}

const checkText = (signature: string, name: string, value: unknown): void => {
  if (typeof value === 'string' && value !== '') return
  throw new TypeError(`Expected \`${name}\` of ${signature} to be a non-empty string, got ${shown(value)}`)
}

/** A key that is missing by mistake would let every repetition through, so `undefined` is refused too. */
const keyOf = (signature: string, options: unknown): { readonly idempotency_key?: string } => {
  if (options === undefined) return {}
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    throw new TypeError(`Expected \`options\` of ${signature} to be an object, got ${shown(options)}`)
  const [unknown] = Object.keys(options).filter((name) => name !== 'idempotencyKey')
  if (unknown !== undefined)
    throw new TypeError(
      `Expected \`options\` of ${signature} to have only \`idempotencyKey\`, got ${shown(unknown)}`,
    )
  if (!('idempotencyKey' in options)) return {}
  const { idempotencyKey } = options
  checkText(signature, 'idempotencyKey', idempotencyKey)
  return { idempotency_key: idempotencyKey as string }
}

const checkRef = (caller: string, ref: unknown): void => {
  if (typeof ref === 'string' && /^[^/]+\/[^/]+$/.test(ref)) return
  throw new TypeError(
    `Expected ${caller}(ref, …) with a reference such as "orders.handlers/onCreated", got ${shown(ref)}`,
  )
}

const shown = (value: unknown): string =>
  typeof value === 'string' ? JSON.stringify(value.slice(0, 80)) : typeof value
