import { METHODS } from 'node:http'
import type { FunctionSpec } from '../events/project.ts'
import { withParameters } from '../events/webhookPath.ts'
import { isoOf } from '../clock.ts'
import { newId } from '../ids.ts'
import { lossIn } from '../sandbox/child/jsonLosses.ts'
import { MAX_DEPTH, MAX_FRAME } from '../sandbox/frames.ts'
import type { Input, RunInfo, WebhookRequest } from '../sdk/wire.ts'
import { demandKeys } from './expected.ts'

type Fields = Readonly<Record<string, unknown>>

export interface GivenInput {
  readonly input: Input
  readonly run_type: RunInfo['run_type']
  readonly event_id: string | null
}

/** Fields of SPEC.md, in the order in which the service gives them. */
const EVENT = ['type', 'data', 'id', 'timestamp', 'source']
const REQUEST = [
  'method',
  'url',
  'originalUrl',
  'headers',
  'query',
  'params',
  'body',
  'bodyRaw',
  'bodyBytes',
  'ip',
  'auth',
]
/** Other names of the same fields. */
const ALIASES: Readonly<Record<string, string>> = {
  'original-url': 'originalUrl',
  'body-raw': 'bodyRaw',
  'body-bytes': 'bodyBytes',
}

/** The fields of a request, each by its name in camelCase. */
const camelCased = (given: Fields): Fields => {
  const named: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(given)) {
    const name = ALIASES[key] ?? key
    if (Object.hasOwn(named, name)) throw new TypeError(`request: expected one name of ${name}, got two`)
    named[name] = value
  }
  return named
}

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The input of a function as the service would give it: a webhook request, an event, a tick, or arguments. */
export const inputOf = (spec: FunctionSpec, args: readonly unknown[], now: number): GivenInput => {
  const [given = {}] = args
  const isEvent = spec.on_event !== undefined || spec.schedule !== undefined
  if (!isEvent && !spec.webhook) return { ...ofArguments(args), event_id: newId() }
  const kind = spec.webhook && !isEvent ? 'a request' : 'an event'
  if (args.length > 1 || !isFields(given))
    throw new TypeError(
      `run(fn, …): expected ${kind} for a function with such a trigger, got ${args.length > 1 ? `${args.length} arguments` : typeof given}`,
    )
  if (spec.webhook && (!isEvent || !looksLikeEvent(given)))
    return {
      input: { kind: 'webhook', request: requestOf(spec.webhook, given) },
      run_type: 'call',
      event_id: null,
    }
  return ofEvent(spec, given, now)
}

/** A function may be for a webhook and for events. */
const looksLikeEvent = (given: Fields): boolean => 'data' in given || 'type' in given

const ofArguments = (args: readonly unknown[]): Pick<GivenInput, 'input' | 'run_type'> => ({
  input: { kind: 'args', args: jsonOf('args', args) as readonly unknown[] },
  run_type: 'call',
})

const ofEvent = ({ on_event, schedule }: FunctionSpec, given: Fields, now: number): GivenInput => {
  demandKeys('event', given, EVENT)
  const isTick = schedule !== undefined && (on_event === undefined || given['type'] === 'svc:schedule')
  const expected = isTick ? 'svc:schedule' : on_event
  const {
    type = expected,
    id = newId(),
    timestamp = isoOf(now),
    source = isTick ? 'schedule' : 'api',
  } = given
  const data = given['data'] ?? (isTick ? { cron: schedule?.cron, scheduled_time: isoOf(now) } : null)
  if (type !== expected)
    throw new TypeError(`event.type: expected ${JSON.stringify(expected)}, got ${JSON.stringify(type)}`)
  const fields = { id, timestamp, source }
  for (const [name, value] of Object.entries(fields))
    if (typeof value !== 'string') throw new TypeError(`event.${name}: expected text, got ${typeof value}`)
  const event = { type, data: jsonOf('event.data', data), ...fields } as Extract<
    Input,
    { kind: 'event' }
  >['event']
  return {
    input: { kind: 'event', event },
    run_type: isTick ? 'schedule' : 'event',
    event_id: isTick ? null : event.id,
  }
}

/** Returns the request as it is in a frame. The function parses its body, as in the service. */
const requestOf = (
  { method, service, path }: NonNullable<FunctionSpec['webhook']>,
  given: Fields,
): WebhookRequest => {
  const fields = camelCased(given)
  demandKeys('request', fields, REQUEST)
  const { body, bodyRaw, bodyBytes, originalUrl, headers = {}, ...rest } = fields
  if (!isFields(headers)) throw new TypeError(`request.headers: expected an object, got ${typeof headers}`)
  if ([body, bodyRaw, bodyBytes].filter((each) => each !== undefined).length > 1)
    throw new TypeError('request: expected one of body, bodyRaw and bodyBytes, got several')
  if (rest['method'] !== undefined && !METHODS.includes(String(rest['method'])))
    throw new TypeError(
      `request.method: expected a method of HTTP, got ${String(rest['method']).slice(0, 80)}`,
    )
  const isJson = body !== undefined && typeof body !== 'string' && !(body instanceof Uint8Array)
  const named = Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]),
  )
  return {
    method,
    url: `/webhook/${service}${isFields(rest['params']) ? withParameters(path, rest['params'] as Record<string, string>) : path}`,
    query: {},
    ...(jsonOf('request', rest) as object),
    headers: { ...(isJson && { 'content-type': 'application/json' }), ...named },
    ...(originalUrl !== undefined && { 'original-url': String(originalUrl) }),
    ...bodyFields(bodyRaw ?? bodyBytes ?? (isJson ? JSON.stringify(jsonOf('request.body', body)) : body)),
  }
}

const bodyFields = (body: unknown): Partial<WebhookRequest> => {
  if (body === undefined) return {}
  if (typeof body === 'string') return { 'body-raw': body }
  if (!(body instanceof Uint8Array))
    throw new TypeError(`request.bodyRaw: expected a string or a Uint8Array, got ${typeof body}`)
  const bytes = Buffer.from(body)
  const text = bytes.toString('utf8')
  return {
    'body-raw': text,
    ...(!bytes.equals(Buffer.from(text)) && { 'body-bytes': bytes.toString('base64') }),
  }
}

/** A copy of the value as JSON. Throws with the path to a value that JSON would change. */
const jsonOf = (root: string, value: unknown): unknown => {
  const loss = lossIn(value, { root, maxDepth: MAX_DEPTH, maxValues: MAX_FRAME })
  if (loss)
    throw new TypeError(`Expected ${root} that can be converted to JSON: ${loss.path} is ${loss.reason}`)
  return JSON.parse(JSON.stringify(value) ?? 'null') as unknown
}
