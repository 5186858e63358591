import Type, { type Static, type TObject, type TSchema } from 'typebox'
import { Compile, type Validator } from 'typebox/compile'
import { AppError } from '../../errors.ts'
import { patternRules } from './patternRules.ts'
import { beginningOf, pathIn, refusedPartOf, unknownIn } from './refusedPart.ts'

/** Checks input against a schema and returns it typed. The error names the field and the expected value. */
export type Check<T> = (input: unknown) => T

/** Compiles at the first use, because most routes of a process never get a request. */
const lazily = (schema: TSchema): (() => Validator) => {
  let validator: Validator | undefined
  return () => (validator ??= Compile(schema))
}

/** Checks a JSON body. Errors about the body as a whole name it `what`. */
export const checkBody = <S extends TSchema>(schema: S, what = 'body'): Check<Static<S>> => {
  const validator = lazily(schema)
  return (input) => {
    if (!validator().Check(input)) throw refusal(validator(), input, what)
    return input as Static<S>
  }
}

const checkNoFields = checkBody(Type.Object({}, { additionalProperties: false }))

/** Checks the body of a route that takes none: a field would have no effect. Some clients send an object without fields. */
export const checkNoBody: Check<undefined> = (input) => {
  if (input !== undefined) checkNoFields(input)
  return undefined
}

/** Checks a query string: applies defaults, converts integers and refuses unknown parameters. */
export const checkQuery = <S extends TObject>(schema: S): Check<Static<S>> => {
  const validator = lazily(schema)
  const properties = schema.properties as Record<string, { type?: string; default?: unknown }>
  const defaults = Object.entries(properties).filter(([, { default: value }]) => value !== undefined)
  return (input) => {
    const query: Record<string, unknown> = {}
    for (const [name, { default: value }] of defaults) query[name] = value
    for (const [name, value] of Object.entries(input as Record<string, string | string[]>)) {
      const property = Object.hasOwn(properties, name) ? properties[name] : undefined
      if (!property) {
        const known = Object.keys(properties)
        throw new AppError(
          'bad_request',
          `${name}: not a parameter of this endpoint${known.length > 0 ? ` (expected ${known.join(', ')})` : ''}`,
        )
      }
      if (Array.isArray(value))
        throw new AppError('bad_request', `${name}: expected once, got ${value.length} times`)
      query[name] = property.type === 'integer' && /^-?\d{1,15}$/.test(value) ? Number(value) : value
    }
    if (!validator().Check(query)) throw refusal(validator(), query, 'query')
    return query as Static<S>
  }
}

const refusal = (validator: Validator, input: unknown, what: string): AppError => {
  const schema = validator.Type()
  // A misspelt field is also missing under its right name; the message about the misspelling is clearer.
  const unknown = unknownIn(schema, input)
  if (unknown) return unknownField(unknown, fieldsAt(schema, unknown.slice(0, -1)))
  const part = refusedPartOf(schema, input)
  const errors = validator.Errors(part.value)
  // The message about a union as a whole is clearer than those about its members, unless the value is nearly one of them.
  const union = errors.find(({ keyword }) => keyword === 'anyOf')
  const nearly = errors.find(
    ({ keyword, instancePath }) =>
      keyword !== 'anyOf' &&
      keyword !== 'const' &&
      (keyword !== 'type' || (union && instancePath.startsWith(`${union.instancePath}/`))),
  )
  const error = nearly ?? union ?? errors[0]
  const missing = error?.keyword === 'required' ? error.params.requiredProperties[0] : undefined
  const path = [...(error ? pathIn(part, error) : []), ...(missing === undefined ? [] : [missing])]
  const field = path.join('.') || what
  if (missing !== undefined) return new AppError('bad_request', `${field}: is required`)
  const expected =
    // Of a large union, the validator reports only the first members.
    (error?.keyword === 'pattern' && inWords(error.params.pattern)) ||
    (error?.keyword === 'minProperties' && `expected at least one of ${fieldsAt(schema, path).join(', ')}`) ||
    ((error?.keyword === 'anyOf' || error?.keyword === 'const') && alternativesAt(schema, path)) ||
    (error?.message ?? 'is not valid')
  return new AppError('bad_request', `${field}: ${expected}${takesSecrets(schema) ? '' : gotOf(input, path)}`)
}

const inWords = (pattern: string | RegExp): string | undefined => {
  const rule = patternRules.get(String(pattern))
  return rule === undefined ? undefined : `expected ${rule}`
}

/** The refusal of a field that the schema does not have, with those it has. */
export const unknownField = (path: readonly string[], known: readonly string[]): AppError => {
  const field = path.map(shortened).join('.')
  const expected = known.length > 0 ? `expected ${known.join(', ')}` : 'expected no fields'
  return new AppError('bad_request', `${field}: unknown field; ${expected}`)
}

/** Characters of a name or a value in a message. */
const MAX_SHOWN = 60

const shortened = (text: string): string => (text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text)

/** Whether the input may contain a secret, even in the wrong field: then the message does not repeat it (I6). */
const takesSecrets = (schema: TSchema): boolean =>
  Object.values((schema as Partial<TObject>).properties ?? {}).some(
    (property) => (property as { writeOnly?: boolean }).writeOnly === true,
  )

/** The received value for a message, cut if it is long. */
const gotOf = (input: unknown, path: readonly string[]): string => {
  let value = input
  for (const segment of path) value = (value as Record<string, unknown> | undefined)?.[segment]
  const text = value === undefined ? undefined : beginningOf(value, MAX_SHOWN + 1)
  return text === undefined ? '' : `, got ${shortened(text)}`
}

/** The members of a union: its literals, or its types. */
const alternativesAt = (schema: TSchema, path: readonly string[]): string | undefined => {
  const { anyOf = [] } = (schemaAt(schema, path) ?? {}) as { anyOf?: { const?: unknown; type?: string }[] }
  const literals = anyOf.flatMap((member) => (member.const === undefined ? [] : [String(member.const)]))
  if (literals.length > 0) return `expected one of ${literals.join(', ')}`
  const types = anyOf.flatMap(({ type }) => type ?? [])
  return types.length > 0 && types.length === anyOf.length ? `expected ${types.join(' or ')}` : undefined
}

const fieldsAt = (schema: TSchema, path: readonly string[]): string[] =>
  Object.keys((schemaAt(schema, path) as Partial<TObject> | undefined)?.properties ?? {})

const schemaAt = (schema: TSchema, path: readonly string[]): unknown => {
  let at: unknown = schema
  for (const segment of path)
    at = (at as { properties?: Record<string, unknown> } | undefined)?.properties?.[segment]
  return at
}
