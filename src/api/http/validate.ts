import type { Static, TObject, TSchema } from 'typebox'
import { Compile, type Validator } from 'typebox/compile'
import { AppError } from '../../errors.ts'

/** Checks input against a schema and returns it typed; a refusal names the field and what was expected. */
export type Check<T> = (input: unknown) => T

/** Compiled at the first use: most routes of a process never see a request. */
const lazily = (schema: TSchema): (() => Validator) => {
  let validator: Validator | undefined
  return () => (validator ??= Compile(schema))
}

/** For a JSON body: `what` names the whole when a field cannot be named. */
export const checkBody = <S extends TSchema>(schema: S, what = 'body'): Check<Static<S>> => {
  const validator = lazily(schema)
  return (input) => {
    if (!validator().Check(input)) throw refusal(validator(), input, what)
    return input as Static<S>
  }
}

/** For a query string: text becomes the number or boolean the schema wants; what it does not know is refused. */
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
  const errors = validator.Errors(input)
  // Of a union, the message about the whole says more than those about its members.
  const error = errors.find(({ keyword }) => keyword === 'anyOf') ?? errors[0]
  const missing = error?.keyword === 'required' ? error.params.requiredProperties[0] : undefined
  const path = [
    ...(error?.instancePath ?? '').split('/').slice(1),
    ...(missing === undefined ? [] : [missing]),
  ]
  const field = path.map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~')).join('.') || what
  if (missing !== undefined) return new AppError('bad_request', `${field}: is required`)
  const literals = error?.keyword === 'anyOf' ? literalsAt(validator.Type(), path) : []
  const expected =
    literals.length > 0 ? `expected one of ${literals.join(', ')}` : (error?.message ?? 'is not valid')
  return new AppError(
    'bad_request',
    `${field}: ${expected}${takesSecrets(validator.Type()) ? '' : gotOf(input, path)}`,
  )
}

/** Whether what came may be a secret, and in the wrong place at that: then it is not said again (I6). */
const takesSecrets = (schema: TSchema): boolean =>
  Object.values((schema as Partial<TObject>).properties ?? {}).some(
    (property) => (property as { writeOnly?: boolean }).writeOnly === true,
  )

/** What came, when it is short enough to say. */
const gotOf = (input: unknown, path: readonly string[]): string => {
  let value = input
  for (const segment of path) value = (value as Record<string, unknown> | undefined)?.[segment]
  const text = value === undefined ? undefined : JSON.stringify(value)
  return text === undefined ? '' : `, got ${text.length > 60 ? `${text.slice(0, 60)}…` : text}`
}

const literalsAt = (schema: TSchema, path: readonly string[]): string[] => {
  let at: unknown = schema
  for (const segment of path)
    at = (at as { properties?: Record<string, unknown> } | undefined)?.properties?.[segment]
  const members = (at as { anyOf?: { const?: unknown }[] } | undefined)?.anyOf ?? []
  return members.flatMap((member) => (member.const === undefined ? [] : [String(member.const)]))
}
