/**
 * The module `svc`: what functions of a build import. All but `fn` need a run around them and throw
 * otherwise. What they send is durable when they resolve, and in the order of the calls.
 */
import type { RunInfo } from './wire.ts'
import { activeRun } from './activeRun.ts'

export { files, type FileInfo } from './files.ts'
export type { Event, Tick, WebhookRequest, WebhookResponse } from './input.ts'
export { fn, type Metadata, type Retry, type Schedule, type Webhook } from './metadata.ts'

/** Publishes an event on the run's stream. */
export const send = async (type: string, data: unknown = null): Promise<{ readonly event_id: string }> => {
  checkText('send(type, data)', 'type', type)
  const sent = await activeRun('send').request({ op: 'send', event_type: type, event_data: data })
  return sent as { event_id: string }
}

/** Starts a function as a background run. `ref` is `ns/var`, for example `orders.handlers/onCreated`. */
export const call = async (
  ref: string,
  ...args: readonly unknown[]
): Promise<{ readonly run_id: string }> => {
  checkRef('call', ref)
  return (await activeRun('call').request({ op: 'call', fn: ref, args })) as { run_id: string }
}

/** Runs a function as a child run and resolves with its result; rejects when it fails. */
export const run = async <Result = unknown>(ref: string, ...args: readonly unknown[]): Promise<Result> => {
  checkRef('run', ref)
  return (await activeRun('run').request({ op: 'run', fn: ref, args })) as Result
}

/** Sends live data to whoever follows the run's stream, as `stream:data`. */
export const emit = async (dataType: string, payload: unknown = null): Promise<void> => {
  checkText('emit(dataType, payload)', 'dataType', dataType)
  await activeRun('emit').request({ op: 'emit', data_type: dataType, payload })
}

/** The value of a context variable of the run's project, decrypted. Rejects with code `not_found`. */
export const context = async (key: string): Promise<string> => {
  checkText('context(key)', 'key', key)
  return (await activeRun('context').request({ op: 'context', key })) as string
}

/** The run around the caller. `signal` aborts when it is cancelled or out of time. */
export const currentRun = (): RunInfo & { readonly signal: AbortSignal } => {
  const { info, signal } = activeRun('currentRun')
  return { ...info, signal }
}

const checkText = (signature: string, name: string, value: unknown): void => {
  if (typeof value === 'string' && value !== '') return
  throw new TypeError(
    `Expected \`${name}\` of ${signature} to be a string that is not empty, got ${shown(value)}`,
  )
}

const checkRef = (caller: string, ref: unknown): void => {
  if (typeof ref === 'string' && /^[^/]+\/[^/]+$/.test(ref)) return
  throw new TypeError(
    `Expected ${caller}(ref, …) with a reference such as "orders.handlers/onCreated", got ${shown(ref)}`,
  )
}

const shown = (value: unknown): string =>
  typeof value === 'string' ? JSON.stringify(value.slice(0, 80)) : typeof value
