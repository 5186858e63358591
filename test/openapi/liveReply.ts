import type { TSchema } from 'typebox'
import { Compile, type Validator } from 'typebox/compile'
import type { OpenApiDocument } from '../../src/api/openapi/document.ts'

type Json = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Resolves a JSON pointer of the document, such as `#/components/schemas/Run`. */
const at = (document: OpenApiDocument, pointer: string): unknown =>
  pointer
    .slice(2)
    .split('/')
    .reduce<unknown>(
      (value, key) => (isObject(value) ? value[key.replaceAll('~1', '/')] : undefined),
      document,
    )

/** Returns a part of the document with every `$ref` resolved. Throws for a dangling reference. */
export const resolved = (document: OpenApiDocument, value: unknown): unknown => {
  if (Array.isArray(value)) return value.map((item) => resolved(document, item))
  if (!isObject(value)) return value
  const { $ref } = value
  if (typeof $ref === 'string') {
    const target = at(document, $ref)
    if (target === undefined) throw new Error(`Expected ${$ref} to point to something`)
    return resolved(document, target)
  }
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, resolved(document, item)]))
}

/** Objects with known properties admit no others, so that undocumented properties are found. */
const closed = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(closed)
  if (!isObject(value)) return value
  const entries = Object.fromEntries(Object.entries(value).map(([key, item]) => [key, closed(item)]))
  return isObject(value['properties']) && value['type'] === 'object'
    ? { ...entries, additionalProperties: false }
    : entries
}

/** Returns the documented schema of a reply. */
export const replySchema = (
  document: OpenApiDocument,
  operationId: string,
  status: number,
  type = 'application/json',
) => {
  const operation = Object.values(document.paths)
    .flatMap((operations) => Object.values(operations))
    .find((candidate) => candidate['operationId'] === operationId)
  const responses = resolved(document, operation?.['responses']) as Record<
    string,
    { content?: Record<string, Json> }
  >
  const schema = responses[String(status)]?.content?.[type]?.['schema']
  if (!isObject(schema)) throw new Error(`Expected ${operationId} to document a ${status} of ${type}`)
  return closed(schema) as TSchema
}

const compiled = new WeakMap<TSchema, Validator>()

/** Returns the differences between a value and a schema. */
export const mismatches = (schema: TSchema, value: unknown): string[] => {
  const validator = compiled.get(schema) ?? Compile(schema)
  compiled.set(schema, validator)
  return validator
    .Errors(value)
    .map(({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`)
}
