import type { Context } from 'koa'
import { AppError } from '../../errors.ts'

/** The error of a webhook whose function failed. The run records it. It is not logged: the service did not fail. */
export const functionFailed = (message: string): AppError =>
  new AppError('internal_server_error', message, { data: { byFunction: true } })

/** Replies with a handler's `{status, headers, body}`, or with 200 and any other result as JSON. */
export const replyWith = (ctx: Context, result: unknown): void => {
  if (!isResponse(result)) {
    ctx.status = 200
    ctx.type = 'application/json'
    ctx.body = JSON.stringify(result ?? null)
    return
  }
  ctx.status = result.status
  const { body } = result
  if (body !== undefined) {
    ctx.type = 'application/json'
    ctx.body = JSON.stringify(body)
  } else ctx.body = null
  ctx.status = result.status
  for (const [name, value] of Object.entries(result.headers ?? {})) setHeader(ctx, name, value)
}

const setHeader = (ctx: Context, name: string, value: unknown): void => {
  if (/^(content-length|transfer-encoding|connection|x-request-id)$/i.test(name)) return // set by the server
  try {
    ctx.set(name, Array.isArray(value) ? value.map(String) : String(value))
  } catch {
    throw functionFailed(`headers: "${name.slice(0, 60)}" is not a header that can be sent`)
  }
}

interface Response {
  readonly status: number
  readonly headers?: Record<string, unknown>
  readonly body?: unknown
}

const isResponse = (result: unknown): result is Response => {
  if (typeof result !== 'object' || result === null || Array.isArray(result)) return false
  const { status, headers } = result as { status?: unknown; headers?: unknown }
  return (
    Number.isInteger(status) &&
    (status as number) >= 200 &&
    (status as number) <= 599 &&
    (headers === undefined || (typeof headers === 'object' && headers !== null))
  )
}
