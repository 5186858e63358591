import { Compile, type Validator } from 'typebox/compile'
import { type DomainEvent, type EventType, schemaOf } from './index.ts'

const validators = new Map<EventType, Validator>()

const isType = (type: unknown): type is EventType => typeof type === 'string' && Object.hasOwn(schemaOf, type)

/** Returns a value of another installation as a fact. Throws an `Error` that names the field which the schema refuses. */
export const checkedFact = (value: object): DomainEvent => {
  const type = 'type' in value ? value.type : undefined
  if (!isType(type))
    throw new Error(`expected a type of fact that this build knows, got ${String(type).slice(0, 60)}`)
  const validator = validators.get(type) ?? Compile(schemaOf[type])
  validators.set(type, validator)
  if (validator.Check(value)) return value as DomainEvent
  const [error] = validator.Errors(value)
  throw new Error(`${type}${error?.instancePath ?? ''}: ${error?.message ?? 'is not valid'}`)
}
