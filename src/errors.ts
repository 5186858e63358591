/**
 * Every error that a caller can receive: its HTTP status (SPEC.md, Errors), and whether another attempt may succeed.
 * A failure that the service must react to is a fact instead; a failure of user code is `RunFailed`.
 */
const catalogue = {
  bad_request: { status: 400, retryable: false },
  unauthorized: { status: 401, retryable: false },
  forbidden: { status: 403, retryable: false },
  permission_escalation: { status: 403, retryable: false },
  plan_required: { status: 403, retryable: false },
  quota_exceeded: { status: 403, retryable: false },
  domain_limit_reached: { status: 403, retryable: false },
  not_found: { status: 404, retryable: false },
  method_not_allowed: { status: 405, retryable: false },
  request_timeout: { status: 408, retryable: true },
  project_exists: { status: 409, retryable: false },
  context_exists: { status: 409, retryable: false },
  domain_exists: { status: 409, retryable: false },
  idempotency_key_reused: { status: 409, retryable: false },
  conflict: { status: 409, retryable: true },
  precondition_failed: { status: 412, retryable: false },
  payload_too_large: { status: 413, retryable: false },
  unsupported_media_type: { status: 415, retryable: false },
  range_not_satisfiable: { status: 416, retryable: false },
  misdirected_request: { status: 421, retryable: false },
  rate_limit_exceeded: { status: 429, retryable: true },
  session_limit_exceeded: { status: 429, retryable: false },
  headers_too_large: { status: 431, retryable: false },
  internal_server_error: { status: 500, retryable: false },
  unavailable: { status: 503, retryable: true },
  /** Only user code receives it: the run is as deep in a chain of runs as one may be. */
  depth_exceeded: { status: 409, retryable: false },
  /**
   * The stream is not at the expected revision. The command handler retries the append, so no client sees this code.
   */
  wrong_revision: { status: 409, retryable: true },
} as const

export type ErrorCode = keyof typeof catalogue

export class AppError extends Error {
  readonly code: ErrorCode
  readonly data: Readonly<Record<string, unknown>>

  constructor(
    code: ErrorCode,
    message: string,
    options: { cause?: unknown; data?: Record<string, unknown> } = {},
  ) {
    super(message, { cause: options.cause })
    this.name = 'AppError'
    this.code = code
    this.data = options.data ?? {}
  }

  get status(): number {
    return catalogue[this.code].status
  }

  get retryable(): boolean {
    return catalogue[this.code].retryable
  }
}

/** An error that no later attempt can resolve: a loop that gets it stops at once. */
export class PermanentError extends AppError {
  override get retryable(): boolean {
    return false
  }
}

export const isAppError = (error: unknown, code?: ErrorCode): error is AppError =>
  error instanceof AppError && (code === undefined || error.code === code)

/** Returns the message of any thrown value, which need not be an `Error`. */
export const messageOf = (thrown: unknown): string =>
  thrown instanceof Error ? thrown.message : String(thrown)

/** The code of an error of the system: its message would repeat the path. */
export const reasonOf = (error: unknown): string =>
  (error instanceof Error && 'syscall' in error && (error as NodeJS.ErrnoException).code) || messageOf(error)

/** The text about a file that the system does not let this process read. */
export const unreadable = (file: string, error: unknown): string =>
  `${file}: cannot be read (${reasonOf(error)}): it must be a file that this user may read, in a folder that this user may enter`

/** Whether a retry may succeed, because an engine is unavailable or another writer was faster; false for a defect. */
export const isRetryable = (error: unknown): boolean => error instanceof AppError && error.retryable

/** Whether an error refuses a request for a reason that another attempt would find again. */
export const isRefusal = (error: unknown): error is AppError =>
  error instanceof AppError && !error.retryable && error.status < 500

/** Returns the stacks of a thrown value and of its causes, for logs. */
export const stackOf = (thrown: unknown): string => {
  if (!(thrown instanceof Error)) return String(thrown)
  const stack = thrown.stack ?? thrown.message
  return thrown.cause === undefined ? stack : `${stack}\ncaused by ${stackOf(thrown.cause)}`
}
