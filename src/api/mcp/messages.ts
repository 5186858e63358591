import { AppError } from '../../errors.ts'
import { isObject } from '../../events/isObject.ts'

/** Messages of JSON-RPC 2.0, as the Model Context Protocol restricts them. */

export type RequestId = string | number

type Params = Readonly<Record<string, unknown>>

export interface RpcRequest {
  readonly kind: 'request'
  readonly id: RequestId
  readonly method: string
  readonly params: Params
}

/** A message of a client. The service sends no requests, so it expects no responses. */
export type Message =
  | RpcRequest
  | { readonly kind: 'notification'; readonly method: string; readonly params: Params }
  | { readonly kind: 'response' }
  | { readonly kind: 'invalid'; readonly id: RequestId | null; readonly answer: Answer }

export interface RpcError {
  readonly code: number
  readonly message: string
}

/** What a request leads to: the JSON-RPC response without its id. */
export type Answer = { readonly result: unknown } | { readonly error: RpcError }

const parseError = (message: string): Answer => ({ error: { code: -32700, message } })
const invalidRequest = (message: string): Answer => ({ error: { code: -32600, message } })
export const methodNotFound = (message: string): Answer => ({ error: { code: -32601, message } })
export const invalidParams = (message: string): Answer => ({ error: { code: -32602, message } })
export const internalError = (message: string): Answer => ({ error: { code: -32603, message } })

/** The response to a request; null is the id of a message that could not be read. */
export const responseOf = (id: RequestId | null, answer: Answer) => ({ jsonrpc: '2.0', id, ...answer })

/** Longer ids and names of methods are mistakes. */
const MAX_TEXT = 256

const MEMBERS = ['jsonrpc', 'id', 'method', 'params']

/** Reads a message, or the error of a body that is no JSON. The current version of the protocol has no batches. */
export const messageOf = (body: unknown): Message => {
  if (body instanceof AppError) return { kind: 'invalid', id: null, answer: parseError(body.message) }
  if (Array.isArray(body))
    return invalid(null, 'body: expected one message; MCP has no batches since the version 2025-06-18')
  if (!isObject(body)) return invalid(null, 'body: expected a JSON-RPC message, which is an object')
  const { jsonrpc, id, method, params = {} } = body
  const known = isRequestId(id) ? id : null
  if (jsonrpc !== '2.0') return invalid(known, `jsonrpc: expected "2.0", got ${shown(jsonrpc)}`)
  if (method === undefined && ('result' in body || 'error' in body)) return { kind: 'response' }
  if (typeof method !== 'string' || method === '' || method.length > MAX_TEXT)
    return invalid(known, `method: expected a text of 1 to ${MAX_TEXT} characters, got ${shown(method)}`)
  if (!isObject(params)) return invalid(known, `params: expected an object, got ${shown(params)}`)
  const unknown = Object.keys(body).find((name) => !MEMBERS.includes(name))
  if (unknown !== undefined)
    return invalid(known, `${shown(unknown).slice(1, -1)}: unknown field; expected ${MEMBERS.join(', ')}`)
  if (!('id' in body)) return { kind: 'notification', method, params }
  if (known === null)
    return invalid(
      null,
      `id: expected a whole number or a text of at most ${MAX_TEXT} characters, got ${shown(id)}`,
    )
  return { kind: 'request', id: known, method, params }
}

export const isRequestId = (id: unknown): id is RequestId =>
  typeof id === 'string' ? id.length <= MAX_TEXT : Number.isSafeInteger(id)

/** The start of a received value, for an error. */
export const shown = (value: unknown): string =>
  (JSON.stringify(value) ?? String(value)).slice(0, 80).toWellFormed()

const invalid = (id: RequestId | null, reason: string): Message => ({
  kind: 'invalid',
  id,
  answer: invalidRequest(reason),
})
