import { AppError, type ErrorCode } from '../../errors.ts'
import type { Route } from '../route.ts'
import { hasHelp } from '../http/helpLink.ts'
import { type JsonSchema, refTo } from './jsonSchema.ts'

/** The error codes that a client can get, and their meaning. */
const meanings = {
  bad_request: 'A parameter or the body is invalid; the message names the field',
  unauthorized: 'The credential is missing, invalid, expired or revoked',
  forbidden: 'The credential lacks the permission',
  permission_escalation: 'The requested permissions exceed those of the credential',
  plan_required: 'The feature requires a higher plan',
  quota_exceeded: 'A limit of the plan is reached',
  domain_limit_reached: 'The plan allows no more domains',
  not_found: 'The resource does not exist in the environment of the credential',
  method_not_allowed: 'The path does not support this method',
  request_timeout: 'The request took too long to arrive',
  project_exists: 'The environment already has a project with this name',
  context_exists: 'The project already has a context variable with this key',
  domain_exists: 'The domain is already registered',
  idempotency_key_reused: 'The `Idempotency-Key` was already used for a different request',
  conflict: 'The resource changed concurrently, or its name is in use',
  precondition_failed: 'The content is not the one that the condition names',
  payload_too_large: 'The body is larger than allowed',
  unsupported_media_type: 'The media type of the body is not supported',
  range_not_satisfiable: 'The requested range is outside the content',
  misdirected_request: 'The connection was opened for another host',
  rate_limit_exceeded:
    'The organization has sent too many requests, or the address too many without a valid credential',
  session_limit_exceeded: 'The API key has too many active sessions',
  headers_too_large: 'The headers are larger than allowed',
  internal_server_error: 'An unexpected error occurred; the server log contains it with the request id',
  unavailable: 'An engine or a worker cannot be reached at the moment',
} as const satisfies Record<Exclude<ErrorCode, 'wrong_revision' | 'depth_exceeded'>, string>

type Refusal = keyof typeof meanings
const codes = Object.keys(meanings) as Refusal[]

export const ErrorSchema: JsonSchema = {
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['code', 'message', 'request_id'],
      properties: {
        code: { type: 'string', enum: codes },
        message: { type: 'string', description: 'Text for people. Programs should use `code`' },
        request_id: { type: 'string', format: 'uuid' },
        run_id: { type: 'string', format: 'uuid', description: 'The run of a webhook whose function failed' },
      },
    },
  },
}

/** The error codes that a route may return: those implied by its parts, and its own. */
const refusalsOf = ({
  needs,
  operator,
  takesKey,
  path,
  method,
  form,
  rawBody,
  errors = [],
}: Route): Refusal[] => {
  const closed = needs !== null || operator === true
  const readsBody = method !== 'GET' || rawBody !== undefined
  const implied: [Refusal, boolean][] = [
    ['unauthorized', closed],
    ['forbidden', needs !== null],
    ['bad_request', true],
    ['not_found', closed && /[:*]/.test(path)],
    ['conflict', closed && method !== 'GET'],
    ['idempotency_key_reused', takesKey],
    ['request_timeout', readsBody],
    ['payload_too_large', readsBody],
    ['unsupported_media_type', form !== undefined],
    ['rate_limit_exceeded', closed],
    ['internal_server_error', closed],
    ['unavailable', closed],
  ]
  const all = new Set<ErrorCode>([
    ...implied.flatMap(([code, applies]) => (applies ? [code] : [])),
    ...errors,
  ])
  return codes.filter((code) => all.has(code))
}

/** The error replies of a route, by status. */
export const refusalReplies = (route: Route): Record<string, JsonSchema> => {
  const byStatus = Map.groupBy(refusalsOf(route), statusOf)
  return Object.fromEntries(
    [...byStatus].map(([status, found]) => [
      String(status),
      found.length === 1 ? refTo('responses', String(found[0])) : replyOf(found),
    ]),
  )
}

/** Returns one reply for each code, for `components.responses`. */
export const refusalResponses = (): Record<string, JsonSchema> =>
  Object.fromEntries(codes.map((code) => [code, replyOf([code])]))

const statusOf = (code: ErrorCode): number => new AppError(code, '').status

/** Headers of every reply to a rate-limited request. */
export const rateHeaders = {
  RateLimit: refTo('headers', 'RateLimit'),
  'RateLimit-Policy': refTo('headers', 'RateLimit-Policy'),
}

const replyOf = (found: readonly Refusal[]): JsonSchema => {
  const retryable = found.some((code) => new AppError(code, '').retryable)
  return {
    description: found.map((code) => `\`${code}\`: ${meanings[code]}`).join('\n\n'),
    headers: {
      'X-Request-Id': refTo('headers', 'X-Request-Id'),
      ...(found.includes('rate_limit_exceeded') && rateHeaders),
      ...(found.some((code) => hasHelp({ code, status: statusOf(code) })) && {
        Link: refTo('headers', 'Link'),
      }),
      ...(retryable && { 'Retry-After': refTo('headers', 'Retry-After') }),
    },
    content: {
      'application/json': {
        schema: refTo('schemas', 'Error'),
        examples: Object.fromEntries(found.map((code) => [code, { value: exampleOf(code) }])),
      },
    },
  }
}

const exampleOf = (code: Refusal): JsonSchema => ({
  error: { code, message: meanings[code], request_id: '01a1faf6-082e-7004-be21-1748e5bd2d51' },
})
