import { counted } from '../text/counted.ts'
import { isObject } from './isObject.ts'
import type { ToolSchema } from './toolSchema.ts'

/** Steps of one check. The author of a schema and the caller are different people, and neither may stop the service. */
const MAX_STEPS = 250_000
/** Characters that one step looks at. */
const TEXT_STEP = 64
/** Characters of what a schema lists, in a message. */
const MAX_LISTED = 300

type Fields = Readonly<Record<string, unknown>>

/** Throws when the check takes too long. */
class TooLong extends Error {}

/**
 * Returns why a value does not match a schema that `mistakeInSchema` accepts, such as `order.id: expected a string, got 5`;
 * undefined if it does.
 */
export const mistakeInInput = (schema: ToolSchema, value: unknown, root: string): string | undefined => {
  let left = MAX_STEPS
  const step = (steps = 1): void => {
    left -= steps
    if (left < 0) throw new TooLong()
  }
  try {
    return mistakeIn(schema, value, '', { step, root, show: showing(step) })
  } catch (error) {
    if (error instanceof TooLong) return `${root}: expected fewer values; their check takes too long`
    throw error
  }
}

type Step = (steps?: number) => void

interface Check {
  readonly step: Step
  readonly root: string
  readonly show: (value: unknown) => string
}

const mistakeIn = (schema: ToolSchema, value: unknown, path: string, check: Check): string | undefined => {
  const { step, root, show } = check
  step(1 + sizeOf(value))
  const told = (expectation: string): string => `${path || root}: expected ${expectation}, got ${show(value)}`
  /** An alternative of a schema may be a mistake for each value of a long list. */
  const listed = (parts: readonly string[], separator = ', '): string => {
    step(Math.ceil(parts.reduce((characters, { length }) => characters + length, 0) / TEXT_STEP))
    return parts.join(separator).slice(0, MAX_LISTED)
  }
  if (schema === true) return undefined
  if (schema === false) return told('no value')
  const inner = (part: unknown, of: unknown, name?: string | number): string | undefined =>
    mistakeIn(part as ToolSchema, of, name === undefined ? path : joined(path, name), check)
  const { type, enum: values, const: constant, anyOf, oneOf, allOf, not } = schema as Keywords
  if (type !== undefined && ![type].flat().some((one) => isOfType(one, value)))
    return told([type].flat().map(withArticle).join(' or '))
  if (values) {
    step(values.length)
    if (!values.some((one) => isEqual(one, value, step)))
      return told(`one of ${listed(values.map((one) => JSON.stringify(one)))}`)
  }
  if ('const' in schema && !isEqual(constant, value, step)) return told(listed([JSON.stringify(constant)]))
  for (const part of allOf ?? []) {
    const mistake = inner(part, value)
    if (mistake !== undefined) return mistake
  }
  if (anyOf) {
    const mistakes = mistakesOf(anyOf, (part) => inner(part, value))
    if (mistakes.length === anyOf.length)
      return mistakes.length === 1 ? mistakes[0] : told(`a value of anyOf (${listed(mistakes, '; ')})`)
  }
  if (oneOf) {
    const matching = oneOf.length - mistakesOf(oneOf, (part) => inner(part, value)).length
    if (matching !== 1)
      return told(`a value that matches 1 of the ${oneOf.length} schemas of oneOf, not ${matching}`)
  }
  if (not !== undefined && inner(not, value) === undefined) return told('a value that does not match not')
  if (typeof value === 'number') return mistakeInNumber(schema, value, told)
  if (typeof value === 'string') return mistakeInText(schema, value, told)
  if (Array.isArray(value)) return mistakeInList(schema, value, told, inner)
  if (isObject(value)) return mistakeInObject(schema, value, path, { told, inner, listed })
  return undefined
}

interface Keywords {
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly anyOf?: readonly unknown[]
  readonly oneOf?: readonly unknown[]
  readonly allOf?: readonly unknown[]
  readonly not?: unknown
}

const mistakesOf = (parts: readonly unknown[], check: (part: unknown) => string | undefined): string[] =>
  parts.map(check).filter((mistake) => mistake !== undefined)

type Told = (expectation: string) => string
type Inner = (part: unknown, of: unknown, name?: string | number) => string | undefined

const mistakeInNumber = (schema: Fields, value: number, told: Told): string | undefined => {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema as Readonly<
    Record<string, number | undefined>
  >
  if (minimum !== undefined && value < minimum) return told(`at least ${minimum}`)
  if (maximum !== undefined && value > maximum) return told(`at most ${maximum}`)
  if (exclusiveMinimum !== undefined && value <= exclusiveMinimum)
    return told(`more than ${exclusiveMinimum}`)
  if (exclusiveMaximum !== undefined && value >= exclusiveMaximum)
    return told(`less than ${exclusiveMaximum}`)
  // Decimal fractions such as 0.3 are no exact multiples of 0.1.
  if (multipleOf !== undefined) {
    const times = value / multipleOf
    if (Math.abs(times - Math.round(times)) > 1e-9 * Math.max(1, Math.abs(times)))
      return told(`a multiple of ${multipleOf}`)
  }
  return undefined
}

const mistakeInText = (schema: Fields, value: string, told: Told): string | undefined => {
  const { minLength = 0, maxLength = Infinity } = schema as Readonly<Record<string, number | undefined>>
  if (minLength === 0 && maxLength === Infinity) return undefined
  let length = 0
  for (const _ of value) length++ // characters, as JSON Schema counts them, not units of UTF-16
  if (length < minLength) return told(`at least ${counted(minLength, 'character')}`)
  return length > maxLength ? told(`at most ${counted(maxLength, 'character')}`) : undefined
}

const mistakeInList = (
  schema: Fields,
  value: readonly unknown[],
  told: Told,
  inner: Inner,
): string | undefined => {
  const { minItems = 0, maxItems = Infinity } = schema as Readonly<Record<string, number | undefined>>
  const prefix = (schema['prefixItems'] ?? []) as readonly unknown[]
  if (value.length < minItems) return told(`at least ${counted(minItems, 'item')}`)
  if (value.length > maxItems) return told(`at most ${counted(maxItems, 'item')}`)
  for (const [index, one] of value.entries()) {
    const part = index < prefix.length ? prefix[index] : schema['items']
    const mistake = part === undefined ? undefined : inner(part, one, index)
    if (mistake !== undefined) return mistake
  }
  return undefined
}

const mistakeInObject = (
  schema: Fields,
  value: Fields,
  path: string,
  { told, inner, listed }: { told: Told; inner: Inner; listed: (parts: readonly string[]) => string },
): string | undefined => {
  const properties = (schema['properties'] ?? {}) as Fields
  const names = Object.keys(value)
  const { minProperties = 0, maxProperties = Infinity } = schema as Readonly<
    Record<string, number | undefined>
  >
  for (const name of (schema['required'] ?? []) as readonly string[])
    if (!Object.hasOwn(value, name)) return `${joined(path, name)}: is required`
  if (names.length < minProperties) return told(`at least ${minProperties} fields`)
  if (names.length > maxProperties) return told(`at most ${maxProperties} fields`)
  for (const name of names) {
    const known = Object.hasOwn(properties, name)
    const part = known ? properties[name] : schema['additionalProperties']
    if (part === false && !known)
      return `${joined(path, name)}: unknown field; expected ${listed(Object.keys(properties)) || 'no fields'}`
    const mistake =
      (part === undefined ? undefined : inner(part, value[name], name)) ??
      (schema['propertyNames'] === undefined ? undefined : inner(schema['propertyNames'], name, name))
    if (mistake !== undefined) return mistake
  }
  return undefined
}

const isOfType = (type: string, value: unknown): boolean => {
  switch (type) {
    case 'null':
      return value === null
    case 'array':
      return Array.isArray(value)
    case 'object':
      return isObject(value)
    case 'integer':
      return Number.isInteger(value)
    default:
      return typeof value === type
  }
}

const withArticle = (type: string): string =>
  type === 'null' ? type : `${/^[aeiou]/.test(type) ? 'an' : 'a'} ${type}`

const joined = (path: string, name: string | number): string => {
  const short = String(name).slice(0, 60)
  return path === '' ? short : `${path}.${short}`
}

/** Steps to look at a value without the values in it. */
const sizeOf = (value: unknown): number => {
  if (typeof value === 'string') return Math.ceil(value.length / TEXT_STEP)
  if (Array.isArray(value)) return value.length
  return isObject(value) ? Object.keys(value).length : 0
}

/** Whether a value is the one of a schema. Each value in them that is compared is a step. */
const isEqual = (constant: unknown, value: unknown, step: Step): boolean => {
  step()
  if (typeof constant === 'string' && typeof value === 'string') {
    if (constant.length === value.length) step(sizeOf(value))
    return constant === value
  }
  if (Array.isArray(constant))
    return (
      Array.isArray(value) &&
      constant.length === value.length &&
      constant.every((one, index) => isEqual(one, value[index], step))
    )
  if (!isObject(constant)) return constant === value
  if (!isObject(value)) return false
  const names = Object.keys(constant)
  step(names.length)
  if (!names.every((name) => Object.hasOwn(value, name) && isEqual(constant[name], value[name], step)))
    return false
  step(sizeOf(value))
  return sizeOf(value) === names.length
}

const MAX_SHOWN = 60

/** Shows each value once, because each alternative of a schema that it does not match shows it again. */
const showing = (step: Step): ((value: unknown) => string) => {
  const known = new Map<unknown, string>()
  return (value) => {
    if (typeof value !== 'object' || value === null) return shown(value, step)
    const text = known.get(value) ?? shown(value, step)
    known.set(value, text)
    return text
  }
}

/** The start of a value. */
const shown = (value: unknown, step: Step): string => {
  if (typeof value === 'string') return cut(JSON.stringify(value.slice(0, MAX_SHOWN + 1)), value.length)
  if (leftAfter(value, MAX_SHOWN, step) >= 0) return cut(JSON.stringify(value))
  return Array.isArray(value) ? `an array of ${counted(value.length, 'item')}` : 'a large object'
}

/** What is left of a number of characters when a value is shown; negative as soon as it has more. */
const leftAfter = (value: unknown, most: number, step: Step): number => {
  let left = most - 1
  if (typeof value === 'string') return left - value.length
  if (typeof value !== 'object' || value === null) return left
  if (!Array.isArray(value)) step(sizeOf(value)) // all its names are listed
  const names = Array.isArray(value) ? value.keys() : Object.keys(value)
  for (const name of names) {
    if (left < 0) return left
    left = leftAfter((value as Fields)[name], left - String(name).length, step)
  }
  return left
}

const cut = (text: string, length = text.length): string =>
  length > MAX_SHOWN || text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text
