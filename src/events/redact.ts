import type { DomainEvent } from './index.ts'
import { schemaOf } from './index.ts'
import { isObject } from './isObject.ts'

/** Replaces a value that the audit does not show. */
export const REDACTED = '[redacted]'

/** The keywords of JSON Schema that the catalogue uses, and `audit` of `scalars.ts`. */
interface Shape {
  /** TypeBox has it on every schema, also on one of any value. */
  readonly '~kind'?: unknown
  readonly type?: unknown
  readonly const?: unknown
  readonly audit?: unknown
  readonly anyOf?: readonly Shape[]
  readonly items?: Shape
  readonly properties?: Readonly<Record<string, Shape>>
  readonly patternProperties?: Readonly<Record<string, Shape>>
  readonly required?: readonly string[]
}

type OnString = (text: string, audit: unknown) => string

const kindOf = (value: unknown): string =>
  value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value

/** Whether a value can be of this member of a union. */
const fits = ({ type, const: only, properties, required = [] }: Shape, value: unknown): boolean => {
  if (only !== undefined) return value === only
  if (properties && isObject(value)) return required.every((name) => name in value)
  return kindOf(value) === (type === 'integer' ? 'number' : type)
}

/**
 * Copies a value as far as its schema says that it may be shown: numbers, booleans, literals, and strings with `audit`.
 * Everything else is redacted, so a field that no schema declares shows nothing.
 */
const copied = (shape: Shape | undefined, value: unknown, onString: OnString): unknown => {
  if (value === null || value === undefined) return value
  if (shape === undefined) return REDACTED
  if (shape.anyOf)
    return copied(
      shape.anyOf.find((member) => fits(member, value)),
      value,
      onString,
    )
  if (shape.const !== undefined) return shape.const === value ? value : REDACTED
  switch (shape.type) {
    case 'integer':
    case 'number':
    case 'boolean':
      return kindOf(value) === (shape.type === 'integer' ? 'number' : shape.type) ? value : REDACTED
    case 'string':
      return shape.audit !== undefined && typeof value === 'string' ? onString(value, shape.audit) : REDACTED
    case 'array':
      return Array.isArray(value) ? value.map((item) => copied(shape.items, item, onString)) : REDACTED
    case 'object': {
      if (!isObject(value)) return REDACTED
      const { properties = {}, patternProperties = {} } = shape
      const [each] = Object.values(patternProperties)
      return Object.fromEntries(
        Object.entries(value).map(([name, field]) => [
          name,
          copied(Object.hasOwn(properties, name) ? properties[name] : each, field, onString),
        ]),
      )
    }
    default:
      return REDACTED
  }
}

/** The schema of a fact; none for a type of a later version, of which nothing is shown. */
const shapeOf = ({ type }: DomainEvent): Shape | undefined =>
  Object.hasOwn(schemaOf, type) ? schemaOf[type] : undefined

/** Returns a fact without secrets and content: the only form in which the audit stores, folds or shows facts. */
export const redact = <Event extends DomainEvent>(event: Event): Event => {
  const shown = copied(shapeOf(event), event, (text) => text)
  return { ...(isObject(shown) && shown), type: event.type } as Event
}

/** Returns the ids and names by which the audit finds a fact, each once. */
export const resourcesOf = (event: DomainEvent): readonly string[] => {
  const found = new Set<string>()
  copied(shapeOf(event), event, (text, audit) => {
    if (audit === 'resource' && text !== '') found.add(text)
    return text
  })
  return [...found]
}
