import { isControl, MAX_EVENT_TYPE } from '../events/eventType.ts'
import type { FunctionSpec } from '../events/project.ts'
import { CONTEXT_KEY_RULE, isContextKey } from '../events/contextKey.ts'
import { CRON_FIELDS, ticksOf } from '../domain/cron.ts'
import type { RawFunction } from '../sandbox/protocol.ts'
import { keyOf, unknownKeyIn } from './metadataKeys.ts'

const MAX_TIMEOUT = 900_000
const MAX_CONTEXT_KEYS = 100
const MAX_DELAY = 3_600_000
const DEFAULT_DELAY = 1000
const METHODS = ['GET', 'PUT', 'PATCH', 'DELETE', 'POST']
const VAR = /^[\p{ID_Start}$_][\p{ID_Continue}$]{0,127}$/u
const NS = /^[^/\p{Cc}]{1,512}$/u
const URL_SAFE = /^[A-Za-z0-9._-]{1,128}$/
const PATH = /^\/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*$/
const HEADER = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/

/** Characters of one function as JSON: every node has the functions of all deployed builds in memory. */
const MAX_SPEC = 8 << 10
const CONTROL = /\p{Cc}/u
const CONTROL_BUT_LINES = /(?![\n\t])\p{Cc}/u

/** Invalid metadata. The message is for the author of the build. */
export class BadMetadata extends Error {}

type Fields = Readonly<Record<string, unknown>>
type Spec = { -readonly [K in keyof FunctionSpec]: FunctionSpec[K] }

/** Returns the functions of one module with valid metadata and its defaults. Throws `BadMetadata`. */
export const toFunctionSpecs = (
  ns: string,
  file: string,
  functions: readonly RawFunction[],
): FunctionSpec[] =>
  functions
    .filter((raw) => VAR.test(raw.var))
    .map((raw) => {
      if (!NS.test(ns)) throw new BadMetadata(`${file}: Expected a namespace of at most 512 characters`)
      const spec = specOf(ns, raw, `${file}: ${raw.var}: `)
      const size = JSON.stringify(spec).length
      if (size > MAX_SPEC)
        throw new BadMetadata(
          `${file}: ${raw.var}: Expected metadata of at most ${MAX_SPEC} characters, got ${size}`,
        )
      return spec
    })

/** Returns the functions sorted by namespace and var. Throws `BadMetadata` if two have the same name or webhook. */
export const toBuildFunctions = (specs: readonly FunctionSpec[]): FunctionSpec[] => {
  const sorted = specs.toSorted((a, b) => compare(a.ns, b.ns) || compare(a.var, b.var))
  const owners = new Map<string, string>()
  for (const [i, spec] of sorted.entries()) {
    const ref = `${spec.ns}/${spec.var}`
    const before = sorted[i - 1]
    if (before?.ns === spec.ns && before.var === spec.var)
      throw new BadMetadata(`${ref}: Expected a unique function, got it twice`)
    if (!spec.webhook) continue
    const { service, path, method } = spec.webhook
    const endpoint = `${method} ${service}${path}`
    const owner = owners.get(endpoint)
    if (owner)
      throw new BadMetadata(`${ref}: Expected a unique webhook, got ${endpoint}, which ${owner} has too`)
    owners.set(endpoint, ref)
  }
  return sorted
}

const specOf = (ns: string, raw: RawFunction, where: string): FunctionSpec => {
  const spec: Spec = { ns, var: raw.var }
  if (raw.metadata === undefined) return spec
  const given = fieldsOf(raw.metadata, `${where}Expected metadata to be an object`)
  const unknown = unknownKeyIn(given)
  if (unknown !== undefined) throw new BadMetadata(`${where}${unknown}`)
  for (const [key, value] of Object.entries(given)) {
    const known = keyOf(key)
    if (known !== undefined && value !== undefined && value !== null) setField(spec, known, value, where)
  }
  return spec
}

const setField = (spec: Spec, key: string, value: unknown, where: string): void => {
  switch (key) {
    case 'on-event':
      spec.on_event = eventTypeOf(value, `${where}on-event`)
      return
    case 'retry':
      spec.retry = retryOf(value, where)
      return
    case 'once':
      if (booleanOf(value, `${where}once`)) spec.once = true
      return
    case 'schedule':
      spec.schedule = scheduleOf(value, where)
      return
    case 'webhook':
      spec.webhook = webhookOf(value, spec, where)
      return
    case 'secret-headers':
      spec.secret_headers = headersOf(value, where)
      return
    case 'context':
      spec.context = contextOf(value, where)
      return
    case 'timeout':
      spec.timeout = integerOf(value, `${where}timeout`, 1, MAX_TIMEOUT)
      return
  }
}

/** A type that no published event can have would never start the function. */
const eventTypeOf = (value: unknown, what: string): string => {
  const type = textOf(value, what)
  if (type.length > MAX_EVENT_TYPE)
    throw new BadMetadata(expected(what, `to have at most ${MAX_EVENT_TYPE} characters`, type))
  if (isControl(type))
    throw new BadMetadata(
      expected(what, 'not to begin with "svc:", which is for events that control runs', type),
    )
  if (type.endsWith('*'))
    throw new BadMetadata(expected(what, 'to be the exact type of an event, not a pattern', type))
  return type
}

const retryOf = (value: unknown, where: string): NonNullable<FunctionSpec['retry']> => {
  if (typeof value === 'number')
    return { attempts: integerOf(value, `${where}retry`, 0, 10), delay: DEFAULT_DELAY }
  const { attempts, delay } = fieldsOf(value, `${where}Expected retry to be a number or {attempts, delay}`)
  return {
    attempts: integerOf(attempts, `${where}retry.attempts`, 0, 10),
    delay: integerOf(delay ?? DEFAULT_DELAY, `${where}retry.delay`, 0, MAX_DELAY),
  }
}

const scheduleOf = (value: unknown, where: string): NonNullable<FunctionSpec['schedule']> => {
  const given =
    typeof value === 'string'
      ? { cron: value }
      : fieldsOf(value, `${where}Expected schedule to be a string or {cron, timezone}`)
  const cron = textOf(given.cron, `${where}schedule.cron`).trim()
  const timezone = textOf(given.timezone ?? 'UTC', `${where}schedule.timezone`)
  try {
    new Intl.DateTimeFormat('en', { timeZone: timezone })
  } catch {
    throw new BadMetadata(
      `${where}Expected schedule.timezone to be an IANA time zone, got ${shown(timezone)}`,
    )
  }
  let next: number | null
  try {
    next = ticksOf(cron, timezone).after(0)
  } catch {
    throw new BadMetadata(
      `${where}Expected schedule.cron to be a cron expression of ${CRON_FIELDS}, got ${shown(cron)}`,
    )
  }
  if (next === null)
    throw new BadMetadata(`${where}Expected schedule.cron to match some day, got ${shown(cron)}`)
  return { cron, timezone }
}

const webhookOf = (
  value: unknown,
  { ns, var: name }: Spec,
  where: string,
): NonNullable<FunctionSpec['webhook']> => {
  const given = fieldsOf(value, `${where}Expected webhook to be an object`)
  const service = textOf(given.service, `${where}webhook.service`)
  if (!URL_SAFE.test(service) || /^\.+$/.test(service)) {
    throw new BadMetadata(
      `${where}Expected webhook.service to consist of letters, digits, "-", "_" and ".", got ${shown(service)}`,
    )
  }
  const path = textOf(given.path, `${where}webhook.path`).replace(/^(?!\/)/, '/')
  if (!PATH.test(path) || path.length > 512 || /\/\.{0,2}(?:\/|$)/.test(path.replace(/^\/$/, '/x'))) {
    throw new BadMetadata(
      `${where}Expected webhook.path to be a URL path such as "/paid", got ${shown(path)}`,
    )
  }
  const method = textOf(given.method ?? 'POST', `${where}webhook.method`).toUpperCase()
  if (!METHODS.includes(method)) {
    throw new BadMetadata(
      `${where}Expected webhook.method to be one of ${METHODS.join(', ')}, got ${shown(method)}`,
    )
  }
  const auth = given.auth ?? 'none'
  if (auth !== 'none' && auth !== 'required') {
    throw new BadMetadata(`${where}Expected webhook.auth to be "none" or "required", got ${shown(auth)}`)
  }
  return {
    service,
    path,
    method,
    name: textOf(given.name ?? `${ns}_${name}`, `${where}webhook.name`),
    description:
      given.description === undefined ? '' : anyTextOf(given.description, `${where}webhook.description`),
    auth,
    ...(given.agent === undefined ? {} : { agent: textOf(given.agent, `${where}webhook.agent`) }),
  }
}

/** An empty list is meaningful: the function may read no context variable. */
const contextOf = (value: unknown, where: string): string[] => {
  const keys: unknown[] | undefined = Array.isArray(value) ? value : undefined
  if (!keys || keys.length > MAX_CONTEXT_KEYS)
    throw new BadMetadata(
      `${where}Expected context to be a list of at most ${MAX_CONTEXT_KEYS} keys of context variables, got ${shown(value)}`,
    )
  const known = keys.map((key) => {
    if (isContextKey(key)) return key
    throw new BadMetadata(`${where}Expected each of context to be ${CONTEXT_KEY_RULE}, got ${shown(key)}`)
  })
  return [...new Set(known)].sort()
}

const headersOf = (value: unknown, where: string): string[] => {
  const names: unknown[] | undefined = Array.isArray(value) ? value : undefined
  if (!names || names.length > 100)
    throw new BadMetadata(
      `${where}Expected secret-headers to be a list of at most 100 names, got ${shown(value)}`,
    )
  const lower = names.map((name) => {
    if (typeof name === 'string' && HEADER.test(name)) return name.toLowerCase()
    throw new BadMetadata(`${where}Expected each of secret-headers to be a header name, got ${shown(name)}`)
  })
  return [...new Set(lower)]
}

const fieldsOf = (value: unknown, expectation: string): Fields => {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value }
  throw new BadMetadata(`${expectation}, got ${shown(value)}`)
}

const anyTextOf = (value: unknown, what: string): string => {
  if (typeof value === 'string' && CONTROL_BUT_LINES.test(value))
    throw new BadMetadata(expected(what, 'to have no control characters but line breaks and tabs', value))
  if (typeof value === 'string' && value.length <= 1024) return value
  throw new BadMetadata(expected(what, 'to be a string of at most 1024 characters', value))
}

const textOf = (value: unknown, what: string): string => {
  if (typeof value === 'string' && CONTROL.test(value))
    throw new BadMetadata(expected(what, 'to have no control character', value))
  if (typeof value === 'string' && value !== '' && value.length <= 1024) return value
  throw new BadMetadata(expected(what, 'to be a string of 1 to 1024 characters', value))
}

const integerOf = (value: unknown, what: string, least: number, most: number): number => {
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value
  throw new BadMetadata(expected(what, `to be a whole number from ${least} to ${most}`, value))
}

const booleanOf = (value: unknown, what: string): boolean => {
  if (typeof value === 'boolean') return value
  throw new BadMetadata(expected(what, 'to be true or false', value))
}

/** `what` is `file: var: field`; the message has the word Expected before the field. */
const expected = (what: string, expectation: string, value: unknown): string => {
  const at = what.lastIndexOf(': ') + 2
  return `${what.slice(0, at)}Expected ${what.slice(at)} ${expectation}, got ${shown(value)}`
}

const shown = (value: unknown): string => (JSON.stringify(value) ?? String(value)).slice(0, 80)
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
