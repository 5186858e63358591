/** The service refused a request, or could not be reached. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError'
  /** The code of the reply, such as `not_found`; `unreachable` without a reply, `untrusted` if its certificate is refused, `timeout` after `timeoutMs`. */
  readonly code: string
  /** The status of the reply; 0 without a reply. */
  readonly status: number
  /** Finds the request in the log of the service; null without a reply. */
  readonly requestId: string | null
  /** Seconds to wait before the next attempt; null if the reply names none. */
  readonly retryAfter: number | null
  /** The URL of the page of the dashboard about the resource of the request; null if the reply names none. */
  readonly page: string | null

  constructor(
    code: string,
    message: string,
    {
      status = 0,
      requestId = null,
      retryAfter = null,
      page = null,
      cause,
    }: {
      readonly status?: number
      readonly requestId?: string | null
      readonly retryAfter?: number | null
      readonly page?: string | null
      readonly cause?: unknown
    } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
    this.status = status
    this.requestId = requestId
    this.retryAfter = retryAfter
    this.page = page
  }
}

/** A value cannot be a part of a path: another path would be requested. */
export class PathError extends TypeError {
  readonly value: string

  constructor(message: string, value: string) {
    super(message)
    this.value = value
  }
}

/** The run of a call failed or was cancelled. */
export class RunError extends Error {
  override readonly name = 'RunError'
  /** The code of the failure, such as `function_failed` or `timeout`; `cancelled` for a cancelled run. */
  readonly code: string
  readonly runId: string
  /** The function of the run; null for evaluated code. */
  readonly fn: string | null

  constructor(run: {
    readonly run_id: string
    readonly fn: string | null
    readonly status: string
    readonly error?: { readonly code: string; readonly message: string; readonly stack?: string }
  }) {
    const { error } = run
    super(error?.message ?? `The run ${run.run_id} was ${run.status}`)
    this.code = error?.code ?? run.status
    this.runId = run.run_id
    this.fn = run.fn
    // The stack of the function, because the stack of this client names no line of the user.
    if (error?.stack !== undefined) this.stack = error.stack
  }
}
