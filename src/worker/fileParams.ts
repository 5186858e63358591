/** The parameters of file operations that functions make: each is checked, because the process of a function is not trusted. */
import { MAX_PATH_BYTES } from '../content/fileChecks.ts'
import { AppError } from '../errors.ts'
import { isId } from '../ids.ts'
import { CHUNK_BYTES, type HostCall } from '../sdk/wire.ts'

type Params = Extract<HostCall, { op: 'files' }>['params']

export const bytesOf = (params: Params): Buffer => {
  const bytes = Buffer.from(textOf(params, 'content_base64'), 'base64')
  if (bytes.length > CHUNK_BYTES)
    throw new AppError('bad_request', `content: expected at most ${CHUNK_BYTES} bytes at a time`)
  return bytes
}

const textOf = (params: Params, name: string): string => {
  const value = params[name]
  if (typeof value === 'string') return value
  throw new AppError('bad_request', `${name}: expected text`)
}

export const prefixOf = (params: Params): string => {
  const prefix = textOf(params, 'prefix')
  if (prefix.length <= MAX_PATH_BYTES) return prefix
  throw new AppError('bad_request', `prefix: expected at most ${MAX_PATH_BYTES} characters`)
}

export const idOf = (params: Params, name: string): string => {
  const value = textOf(params, name)
  if (isId(value)) return value
  throw new AppError('bad_request', `${name}: expected a UUID`)
}

export const countOf = (params: Params, name: string, fallback: number, min: number, max: number): number => {
  const value = params[name] ?? fallback
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max) return value
  throw new AppError('bad_request', `${name}: expected a whole number from ${min} to ${max}`)
}
