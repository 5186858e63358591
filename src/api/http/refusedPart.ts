import type { TSchema } from 'typebox'
import { Compile, type Validator } from 'typebox/compile'
import { isObject } from '../../events/isObject.ts'

/** The parts of a schema that decide which values of an input are looked at. */
interface Form {
  readonly type?: string
  readonly properties?: Readonly<Record<string, TSchema>>
  readonly additionalProperties?: unknown
  readonly patternProperties?: Readonly<Record<string, TSchema>>
  readonly items?: TSchema
  readonly maxItems?: number
  readonly anyOf?: readonly Form[]
}

/** Returns the path of the first field that an object of the schema does not have; undefined if there is none. */
export const unknownIn = (schema: TSchema, input: unknown): string[] | undefined => {
  const { properties, additionalProperties }: Form = schema
  if (!properties || !isObject(input)) return undefined
  if (additionalProperties === false) {
    const name = Object.keys(input).find((one) => !Object.hasOwn(properties, one))
    if (name !== undefined) return [name]
  }
  for (const [name, property] of Object.entries(properties)) {
    const found = Object.hasOwn(input, name) ? unknownIn(property, input[name]) : undefined
    if (found) return [name, ...found]
  }
  return undefined
}

/** What a refused input is reduced to. */
interface RefusedPart {
  readonly value: unknown
  /** The index that the only element of a reduced list has in the input, by list. */
  readonly indexes: ReadonlyMap<unknown, number>
}

/**
 * Reduces long lists and records of a refused input to their first invalid entry: the validator makes a path for each entry,
 * also for valid ones, and the message names one. The input has no unknown field.
 */
export const refusedPartOf = (schema: TSchema, input: unknown): RefusedPart => {
  const indexes = new Map<unknown, number>()
  const reduced = (form: Form, value: unknown): unknown => {
    if (Array.isArray(value)) return reducedList(listIn(form), value)
    if (!isObject(value)) return value
    if (form.properties)
      return Object.fromEntries(
        Object.keys(value).map((name) => [name, reduced(form.properties?.[name] ?? {}, value[name])]),
      )
    const [entry, ...others] = Object.values(form.patternProperties ?? {})
    return entry && others.length === 0 ? reducedRecord(entry, value) : value
  }
  const reducedList = ({ items, maxItems }: Form, list: readonly unknown[]): unknown => {
    if (!items) return list
    if (maxItems !== undefined) return list.slice(0, maxItems + 1)
    const index = list.findIndex((one) => !isValid(items, one))
    if (index < 0) return list.slice(0, 1)
    const only = [reduced(items, list[index])]
    indexes.set(only, index)
    return only
  }
  const reducedRecord = (entry: TSchema, record: Readonly<Record<string, unknown>>): unknown => {
    const names = Object.keys(record)
    const name = names.find((one) => !isValid(entry, record[one])) ?? names[0]
    return name === undefined ? record : Object.fromEntries([[name, reduced(entry, record[name])]])
  }
  return { value: reduced(schema, input), indexes }
}

/** The form that a list has under a schema, also under a union with one. */
const listIn = (form: Form): Form => form.anyOf?.find(({ type }) => type === 'array') ?? form

const validators = new WeakMap<TSchema, Validator>()

const isValid = (schema: TSchema, value: unknown): boolean => {
  const validator = validators.get(schema) ?? Compile(schema)
  validators.set(schema, validator)
  return validator.Check(value)
}

/** Returns the path in the input of an error about a part of it. */
export const pathIn = (
  { value, indexes }: RefusedPart,
  { instancePath }: { readonly instancePath: string },
): string[] => {
  let at = value
  return instancePath
    .split('/')
    .slice(1)
    .map((segment) => {
      const name = segment.replaceAll('~1', '/').replaceAll('~0', '~')
      const index = indexes.get(at)
      at = (at as Record<string, unknown> | undefined)?.[name]
      return index === undefined ? name : String(index)
    })
}

/** Returns the JSON of a value if it has at most `length` characters, or more of its beginning than that. */
export const beginningOf = (value: unknown, length: number): string | undefined => {
  let left = length
  const begun = (part: unknown): unknown => {
    left-- // each part has a character
    if (typeof part === 'string') return part.slice(0, length)
    if (Array.isArray(part)) {
      const list: unknown[] = []
      for (const one of part) {
        if (left < 0) break
        list.push(begun(one))
      }
      return list
    }
    if (!isObject(part)) return part
    const members: [string, unknown][] = []
    for (const name of Object.keys(part)) {
      if (left < 0) break
      members.push([name.slice(0, length), begun(part[name])])
    }
    return Object.fromEntries(members)
  }
  return JSON.stringify(begun(value))
}
