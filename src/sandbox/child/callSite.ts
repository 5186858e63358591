/** The place at which user code called the SDK: an error of the service has no frames of the user by itself. */
import type { RunError, Thrown } from '../../events/run.ts'
import type { CallSite } from '../../sdk/activeRun.ts'
import type { CallError } from '../protocol.ts'
import { framesOf } from './stacks.ts'

/** Captured before user code can replace it. V8 writes the text of a stack when it is first read. */
const captureStackTrace = Error.captureStackTrace.bind(Error)

/** Captures the stack above the function `callee`. */
export const callSite = (callee: (...args: never[]) => unknown): CallSite => {
  const site: CallSite = {}
  captureStackTrace(site, callee)
  return site
}

/** Returns the error with a stack that begins at the site. */
export const thrownAt = <E extends Error>(error: E, { stack }: CallSite): E => {
  const frames = typeof stack === 'string' ? framesOf(stack) : ''
  return hidden(error, 'stack', `${error.name}: ${error.message}${frames}`)
}

/** The error that user code receives for a host call. That of a child run has its name, fields and causes. */
export const toUserError = ({ code, message, run_id, failure }: CallError): Error => {
  if (!failure) return Object.assign(new Error(message), { code })
  const error = restored({ ...failure, code: codeOf(failure) })
  return Object.assign(error, { run_id })
}

/** The `code` that the function gave its error; otherwise the reason of the failure, such as `timeout`. */
const codeOf = ({ code, fields }: RunError): string | number => {
  const own = fields?.['code']
  return typeof own === 'string' || typeof own === 'number' ? own : code
}

/** Fields that the error has by itself. */
const RESERVED = new Set(['name', 'message', 'stack', 'cause', 'errors', '__proto__'])

const restored = ({ name, message, code, stack, fields, cause, errors }: Thrown): Error => {
  const error = new Error(message)
  for (const [key, value] of Object.entries(fields ?? {}))
    if (!RESERVED.has(key)) Object.assign(error, { [key]: value })
  if (code !== undefined) Object.assign(error, { code })
  if (name !== undefined) hidden(error, 'name', name)
  if (stack !== undefined) hidden(error, 'stack', stack)
  if (cause !== undefined) hidden(error, 'cause', restored(cause as Thrown))
  if (errors !== undefined) hidden(error, 'errors', (errors as readonly Thrown[]).map(restored))
  return error
}

/** Sets a field that is not enumerable, as those of errors are. */
const hidden = <E extends Error>(error: E, key: string, value: unknown): E =>
  Object.defineProperty(error, key, { value, writable: true, configurable: true, enumerable: false })
