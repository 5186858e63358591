import { AppError, type ErrorCode } from '../../errors.ts'
import type { Route } from '../route.ts'
import { type JsonSchema, refTo } from './jsonSchema.ts'

/** The refusals a client can meet, and when. */
const meanings = {
  bad_request: 'A parameter or the body is not what it should be; the message names the field',
  unauthorized: 'The credential is missing, invalid, expired or revoked',
  forbidden: 'The credential lacks the permission',
  permission_escalation: 'The permissions asked for exceed those of the credential that asks',
  plan_required: 'The feature needs a higher plan',
  quota_exceeded: 'A limit of the plan is reached',
  domain_limit_reached: 'The plan allows no more domains',
  not_found: 'There is no such thing in the environment of the credential',
  method_not_allowed: 'The path has no such method',
  not_acceptable: 'The reply cannot have the media type asked for',
  request_timeout: 'The request took too long to arrive',
  project_exists: 'Another project of the environment has the name',
  context_exists: 'The project has a context variable of that key',
  domain_exists: 'The domain is registered already',
  idempotency_key_reused: 'The `Idempotency-Key` was used for another request',
  conflict: 'Something else has taken its place, or others were changing it all the while',
  payload_too_large: 'The body has more bytes than allowed',
  unsupported_media_type: 'The body has another media type than expected',
  range_not_satisfiable: 'The content has no such bytes',
  rate_limit_exceeded: 'Too many requests',
  session_limit_exceeded: 'The key has too many active sessions',
  headers_too_large: 'The headers have more bytes than allowed',
  internal_server_error: 'Something went wrong on our side; the request id finds it in the log',
  unavailable: 'An engine or a worker cannot be reached at the moment',
} as const satisfies Record<Exclude<ErrorCode, 'wrong_revision'>, string>

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
        message: { type: 'string', description: 'For people; programs go by `code`' },
        request_id: { type: 'string', format: 'uuid' },
      },
    },
  },
}

/** Which refusals a route may answer with: what its parts imply, and its own. */
const refusalsOf = ({
  needs,
  operator,
  takesKey,
  path,
  method,
  body,
  form,
  rawBody,
  errors = [],
}: Route): Refusal[] => {
  const closed = needs !== null || operator === true
  const implied: [Refusal, boolean][] = [
    ['unauthorized', closed],
    ['forbidden', needs !== null],
    ['bad_request', true],
    ['not_found', closed && /[:*]/.test(path)],
    ['conflict', closed && method !== 'GET'],
    ['idempotency_key_reused', takesKey],
    ['payload_too_large', closed && Boolean(body ?? form ?? rawBody)],
    ['unsupported_media_type', form !== undefined],
    ['rate_limit_exceeded', needs !== null],
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

/** One reply for each code, for `components.responses`. */
export const refusalResponses = (): Record<string, JsonSchema> =>
  Object.fromEntries(codes.map((code) => [code, replyOf([code])]))

const statusOf = (code: ErrorCode): number => new AppError(code, '').status

/** On every reply to a request that counts, where the plan has a limit. */
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
