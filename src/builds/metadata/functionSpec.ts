import { isControl, MAX_EVENT_TYPE } from '../../events/eventType.ts'
import type { FunctionSpec } from '../../events/project.ts'
import { CONTEXT_KEY_RULE, isContextKey } from '../../events/contextKey.ts'
import { CRON_FIELDS, isTimeZone, ticksOf } from '../../domain/cron.ts'
import { heapBytesOf } from '../../loops/heapBytes.ts'
import { toolNameOf } from '../../events/toolName.ts'
import { hasParameters, shapeOf } from '../../events/webhookPath.ts'
import type { RawFunction } from '../../sandbox/protocol.ts'
import {
  BadMetadata,
  booleanOf,
  durationOf,
  expected,
  fieldsOf,
  integerOf,
  shown,
  textOf,
} from './metadataFields.ts'
import { mcpOf } from './mcpSpec.ts'
import { keyOf, unknownKeyIn } from './metadataKeys.ts'
import { webhookOf } from './webhookSpec.ts'

const MAX_TIMEOUT = 900_000
const ATTEMPTS = { least: 0, most: 10 }
const MAX_CONTEXT_KEYS = 100
const MAX_DELAY = 3_600_000
const DEFAULT_DELAY = 1000
const VAR = /^[\p{ID_Start}$_][\p{ID_Continue}$]{0,127}$/u
const NS = /^[^/\p{Cc}]{1,512}$/u
const HEADER = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/

/** Webhooks with parameters in one build: a request whose path is not literally known is compared with all of them. */
const MAX_PATTERNS = 200
/** Characters of one function as JSON: every node has the functions of all deployed builds in memory. */
const MAX_SPEC = 8 << 10
/** Memory of one function. Thousands of empty objects in a schema take twenty times their text. */
const MAX_SPEC_HEAP = 4 * MAX_SPEC
/** Maximum numbers of one build; real builds have far fewer. */
const MAX_FUNCTIONS = 10_000
const MAX_SCHEDULES = 1000

type Spec = { -readonly [K in keyof FunctionSpec]: FunctionSpec[K] }

/** Whether a reference can name the function: the name of an export may be any text. */
export const hasReference = ({ var: name }: RawFunction): boolean => VAR.test(name)

/** Throws `BadMetadata` for more functions or schedules than a build may have. */
export const checkNumbers = (functions: number, schedules: number): void => {
  if (functions > MAX_FUNCTIONS)
    throw new BadMetadata(`Expected at most ${MAX_FUNCTIONS} exported functions, got more`)
  if (schedules > MAX_SCHEDULES)
    throw new BadMetadata(`Expected at most ${MAX_SCHEDULES} schedules, got more`)
}

/** Returns the functions of one module with valid metadata and its defaults. Throws `BadMetadata`. */
export const toFunctionSpecs = (
  ns: string,
  file: string,
  functions: readonly RawFunction[],
): FunctionSpec[] =>
  functions.filter(hasReference).map((raw) => {
    if (!NS.test(ns)) throw new BadMetadata(`${file}: Expected a namespace of at most 512 characters`)
    const spec = specOf(ns, raw, `${file}: ${raw.var}: `)
    const size = JSON.stringify(spec).length
    if (size > MAX_SPEC)
      throw new BadMetadata(
        `${file}: ${raw.var}: Expected metadata of at most ${MAX_SPEC} characters, got ${size}`,
      )
    if (heapBytesOf(spec) > MAX_SPEC_HEAP)
      throw new BadMetadata(`${file}: ${raw.var}: Expected metadata of fewer lists, objects and values`)
    return spec
  })

/** Returns the functions sorted by namespace and var. Throws `BadMetadata` if two have the same name, webhook or tool. */
export const toBuildFunctions = (specs: readonly FunctionSpec[]): FunctionSpec[] => {
  const sorted = specs.toSorted((a, b) => compare(a.ns, b.ns) || compare(a.var, b.var))
  const owners = new Map<string, string>()
  const tools = new Map<string, string>()
  let patterns = 0
  for (const [i, spec] of sorted.entries()) {
    const ref = `${spec.ns}/${spec.var}`
    const before = sorted[i - 1]
    if (before?.ns === spec.ns && before.var === spec.var)
      throw new BadMetadata(`${ref}: Expected a unique function, got it twice`)
    if (spec.mcp) {
      const tool = toolNameOf(spec.mcp.service, spec.ns, spec.var)
      const holder = tools.get(tool)
      if (holder !== undefined)
        throw new BadMetadata(`${ref}: Expected a unique tool, got ${tool}, which ${holder} has too`)
      tools.set(tool, ref)
    }
    if (!spec.webhook) continue
    const { service, path, method } = spec.webhook
    const endpoint = `${method} ${service}${shapeOf(path)}`
    const owner = owners.get(endpoint)
    if (owner)
      throw new BadMetadata(
        `${ref}: Expected a unique webhook, got ${method} ${service}${path}, which ${owner} has too`,
      )
    owners.set(endpoint, ref)
    if (hasParameters(path) && ++patterns > MAX_PATTERNS)
      throw new BadMetadata(
        `Expected at most ${MAX_PATTERNS} webhooks with parameters in their path, got more`,
      )
  }
  return sorted
}

/** Returns a function with valid metadata and its defaults. Throws `BadMetadata`, whose message begins with `where`. */
export const specOf = (ns: string, raw: RawFunction, where: string): FunctionSpec => {
  const spec: Spec = { ns, var: raw.var }
  if (raw.metadata === undefined) return spec
  const given = fieldsOf(raw.metadata, `${where}Expected metadata to be an object`)
  const unknown = unknownKeyIn(given)
  if (unknown !== undefined) throw new BadMetadata(`${where}${unknown}`)
  const givenAs = new Map<string, string>()
  for (const [key, value] of Object.entries(given)) {
    const known = keyOf(key)
    if (known === undefined || value === undefined || value === null) continue
    const other = givenAs.get(known)
    if (other !== undefined)
      throw new BadMetadata(`${where}Expected either ${other} or ${key}, which are one key, got both`)
    givenAs.set(known, key)
    setField(spec, known, value, where)
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
    case 'mcp':
      spec.mcp = mcpOf(value, where)
      return
    case 'secret-headers':
      spec.secret_headers = headersOf(value, where)
      return
    case 'context':
      spec.context = contextOf(value, where)
      return
    case 'timeout':
      spec.timeout = durationOf(value, `${where}timeout`, 1, MAX_TIMEOUT)
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
    return { attempts: integerOf(value, `${where}retry`, ATTEMPTS), delay: DEFAULT_DELAY }
  const { attempts, delay } = fieldsOf(value, `${where}Expected retry to be a number or {attempts, delay}`)
  return {
    attempts: integerOf(attempts, `${where}retry.attempts`, ATTEMPTS),
    delay: durationOf(delay ?? DEFAULT_DELAY, `${where}retry.delay`, 0, MAX_DELAY),
  }
}

/** The reason in an error of a cron expression; one without a reason is only its format. */
const REASON = /^(?:CronPattern: (?!invalid configuration format)|(?=[a-z ]+: expected ))(.*)/

const scheduleOf = (value: unknown, where: string): NonNullable<FunctionSpec['schedule']> => {
  const given =
    typeof value === 'string'
      ? { cron: value }
      : fieldsOf(value, `${where}Expected schedule to be a string or {cron, timezone}`)
  const cron = textOf(given.cron, `${where}schedule.cron`).trim()
  const timezone = textOf(given.timezone ?? 'UTC', `${where}schedule.timezone`)
  if (!isTimeZone(timezone))
    throw new BadMetadata(
      `${where}Expected schedule.timezone to be an IANA time zone such as "America/Los_Angeles", got ${shown(timezone)}`,
    )
  let next: number | null
  try {
    next = ticksOf(cron, timezone).after(0)
  } catch (error) {
    const [, reason] = REASON.exec((error as Error).message) ?? []
    throw new BadMetadata(
      `${where}Expected schedule.cron to be a cron expression of ${CRON_FIELDS}, got ${shown(cron)}${reason ? ` (${reason})` : ''}`,
    )
  }
  if (next === null)
    throw new BadMetadata(`${where}Expected schedule.cron to match some day, got ${shown(cron)}`)
  return { cron, timezone }
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

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
