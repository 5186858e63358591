import { isObject } from './isObject.ts'

/** JSON Schema of the arguments of a tool: the part of it that the service checks in bounded time. */
export type ToolSchema = boolean | { readonly [keyword: string]: unknown }

/** What is wrong with a schema, and where, such as `input.properties.id.type`. */
export interface SchemaMistake {
  readonly path: string
  readonly expectation: string
  readonly value: unknown
}

export const TYPES = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'] as const

/** Keywords that describe a value and check nothing. `format` is one of them (JSON Schema 2020-12). */
const NOTES: ReadonlySet<string> = new Set([
  '$schema',
  '$comment',
  'title',
  'description',
  'default',
  'examples',
  'deprecated',
  'readOnly',
  'writeOnly',
  'format',
])

const MAX_DEPTH = 20

type Rule = (value: unknown, path: string, depth: number) => SchemaMistake | undefined

const wants =
  (expectation: string, holds: (value: unknown) => boolean): Rule =>
  (value, path) =>
    holds(value) ? undefined : { path, expectation, value }

const isText = (value: unknown): boolean => typeof value === 'string'
const isNumber = (value: unknown): value is number => typeof value === 'number'
const isCount = (value: unknown): boolean => Number.isInteger(value) && Number(value) >= 0
const isType = (value: unknown): boolean => (TYPES as readonly unknown[]).includes(value)

const schema: Rule = (value, path, depth) => {
  if (typeof value === 'boolean') return undefined
  if (!isObject(value)) return { path, expectation: 'to be a schema, which is an object', value }
  if (depth > MAX_DEPTH) return { path, expectation: `to nest at most ${MAX_DEPTH} schemas`, value }
  for (const [keyword, content] of Object.entries(value)) {
    if (NOTES.has(keyword)) continue
    const rule = Object.hasOwn(RULES, keyword) ? RULES[keyword] : undefined
    if (!rule) return unsupported(keyword, path)
    const mistake = rule(content, `${path}.${keyword}`, depth + 1)
    if (mistake) return mistake
  }
  return undefined
}

const unsupported = (keyword: string, path: string): SchemaMistake => ({
  path,
  expectation:
    keyword === 'pattern' || keyword === 'patternProperties'
      ? 'to have no regular expression, which can take the service any time; check it in the function, or use enum'
      : keyword === '$ref' || keyword === '$defs'
        ? 'to contain its schemas without $ref'
        : `to use only the keywords ${[...Object.keys(RULES), ...NOTES].join(', ')}`,
  value: keyword.slice(0, 60),
})

const schemas: Rule = (value, path, depth) => {
  if (!Array.isArray(value) || value.length === 0)
    return { path, expectation: 'to be a list of schemas', value }
  return firstOf(value.entries(), path, depth)
}

const namedSchemas: Rule = (value, path, depth) =>
  isObject(value)
    ? firstOf(Object.entries(value), path, depth)
    : { path, expectation: 'to be an object of schemas', value }

const firstOf = (
  parts: Iterable<readonly [string | number, unknown]>,
  path: string,
  depth: number,
): SchemaMistake | undefined => {
  for (const [name, part] of parts) {
    const mistake = schema(part, `${path}.${name}`, depth)
    if (mistake) return mistake
  }
  return undefined
}

const count = wants('to be a whole number from 0', isCount)
const number = wants('to be a number', isNumber)

const RULES: Readonly<Record<string, Rule>> = {
  type: wants(`to be one of ${TYPES.join(', ')}, or a list of them`, (value) =>
    Array.isArray(value) ? value.length > 0 && value.every(isType) : isType(value),
  ),
  enum: wants('to be a list of values', (value) => Array.isArray(value) && value.length > 0),
  const: () => undefined,
  properties: namedSchemas,
  required: wants('to be a list of names', (value) => Array.isArray(value) && value.every(isText)),
  additionalProperties: schema,
  propertyNames: schema,
  minProperties: count,
  maxProperties: count,
  items: schema,
  prefixItems: schemas,
  minItems: count,
  maxItems: count,
  minLength: count,
  maxLength: count,
  minimum: number,
  maximum: number,
  exclusiveMinimum: number,
  exclusiveMaximum: number,
  multipleOf: wants('to be a number over 0', (value) => isNumber(value) && value > 0),
  anyOf: schemas,
  oneOf: schemas,
  allOf: schemas,
  not: schema,
}

/** Returns what is wrong with the schema of arguments, which are an object; undefined if it is valid. */
export const mistakeInSchema = (value: unknown, path: string): SchemaMistake | undefined => {
  if (!isObject(value)) return { path, expectation: 'to be a JSON Schema, which is an object', value }
  if (value['type'] !== 'object')
    return {
      path: `${path}.type`,
      expectation: 'to be "object", because the arguments of a tool have names',
      value: value['type'],
    }
  return schema(value, path, 0)
}
