import type { TSchema } from 'typebox'
import * as resources from '../schemas.ts'

/** A schema of the document: JSON Schema 2020-12, as in OpenAPI 3.1. */
export type JsonSchema = { readonly [keyword: string]: unknown }

/** Exports of schemas.ts that are not resources. */
const UNNAMED = new Set(['Paging', 'PageQuery', 'pageQuery'])

const named = Object.entries(resources).flatMap(([name, schema]) =>
  UNNAMED.has(name) ? [] : [[name, schema as TSchema] as const],
)

/** Schemas are compared by their JSON, because TypeBox copies a schema that it makes optional. */
const nameOf = new Map(named.map(([name, schema]) => [JSON.stringify(schema), name]))

/** Every named schema of the API in full, for `components.schemas`. */
export const namedSchemas = (): Record<string, JsonSchema> =>
  Object.fromEntries(named.map(([name, schema]) => [name, tidy(plain(schema))]))

/**
 * Converts a schema of a route: resources become references, unions take their short form. The keywords in
 * `documented` only appear in the document; the route checks them itself, with better messages.
 */
export const toJsonSchema = (schema: TSchema): JsonSchema => visit(plain(schema)) as JsonSchema

export const refTo = (kind: 'schemas' | 'responses' | 'headers', name: string): JsonSchema => ({
  $ref: `#/components/${kind}/${name}`,
})

/** Removes TypeBox's internal properties, which are not enumerable. */
const plain = (schema: TSchema): JsonSchema => JSON.parse(JSON.stringify(schema)) as JsonSchema

const isSchema = (value: unknown): value is JsonSchema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const visit = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(visit)
  if (!isSchema(value)) return value
  const name = nameOf.get(JSON.stringify(value))
  return name === undefined ? tidy(value) : refTo('schemas', name)
}

/** The patterns of `Type.Record` that match every name. */
const ANY_NAME: readonly string[] = ['^.*$', '^[\\s\\S]*$']

/** A record of any names, in the form that client generators support: few of them read `patternProperties`. */
const withAnyName = (schema: JsonSchema): JsonSchema => {
  const [only, ...more] = Object.entries(
    (schema['patternProperties'] ?? {}) as Readonly<Record<string, unknown>>,
  )
  if (only === undefined || more.length > 0 || !ANY_NAME.includes(only[0])) return schema
  const { patternProperties: _, ...rest } = schema
  return { additionalProperties: only[1], ...rest }
}

const tidy = ({ documented = {}, ...schema }: JsonSchema): JsonSchema => {
  const { anyOf, ...rest } = Object.fromEntries(
    Object.entries(withAnyName({ ...schema, ...(documented as JsonSchema) })).map(([keyword, value]) => [
      keyword,
      visit(value),
    ]),
  )
  if (!Array.isArray(anyOf)) return anyOf === undefined ? rest : { anyOf, ...rest }
  const members = anyOf.filter(isSchema)
  if (members.every((member) => typeof member.const === 'string')) {
    return { type: 'string', enum: members.map((member) => member.const), ...rest }
  }
  const [value, nothing] = members
  if (members.length === 2 && nothing?.type === 'null' && typeof value?.type === 'string') {
    return { ...value, ...rest, type: [value.type, 'null'] }
  }
  return { anyOf, ...rest }
}
