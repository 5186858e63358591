import Type from 'typebox'
import { Compile, type Validator } from 'typebox/compile'
import type { NewEvent } from '../../src/events/event.ts'
import { schemaOf } from '../../src/events/index.ts'
import { record } from '../../src/events/scalars.ts'

const Metadata = record({
  env_id: Type.Optional(Type.String()),
  correlation_id: Type.String(),
  causation_id: Type.Optional(Type.String()),
  actor: Type.Optional(Type.String()),
  traceparent: Type.Optional(Type.String()),
  actor_type: Type.Optional(
    Type.Union(
      ['api-key', 'session', 'service-key', 'operator', 'client', 'run', 'system'].map((kind) =>
        Type.Literal(kind),
      ),
    ),
  ),
  ip: Type.Optional(Type.String({ minLength: 1 })),
  v: Type.Optional(Type.Integer({ minimum: 1 })),
  first_at: Type.Optional(Type.String()),
  imported_at: Type.Optional(Type.String()),
  unhandled: Type.Optional(Type.Literal(true)),
})

/** Begins the line that reports a fact. A test finds it in the output of the servers that it spawned. */
export const BREAKS = 'A fact breaks its schema:'

const metadata = Compile(Metadata)
const validators = new Map<string, Validator>()

const validatorOf = (type: string): Validator | undefined => {
  const schema = Object.entries(schemaOf).find(([known]) => known === type)?.[1]
  const validator = validators.get(type) ?? (schema && Compile(schema))
  if (validator) validators.set(type, validator)
  return validator
}

/** Returns what the catalogue has against a fact; undefined when it is valid. */
export const problemOf = (fact: NewEvent): string | undefined => {
  const { type } = fact.event
  const validator = validatorOf(type)
  if (!validator) return `${type} is not in the catalogue`
  // An optional field that is present and undefined is absent in the log.
  const event = Object.fromEntries(Object.entries(fact.event).filter(([, value]) => value !== undefined))
  const errors = [
    ...(validator.Check(event) ? [] : validator.Errors(event)),
    ...(metadata.Check(fact.metadata) ? [] : metadata.Errors(fact.metadata)),
  ]
  if (errors.length === 0) return undefined
  return `${type}: ${errors.map(({ instancePath, message, params }) => `${instancePath || '/'} ${message} ${JSON.stringify(params)}`).join('; ')}`
}

let broken = false
process.on('exit', () => {
  if (broken) process.exitCode = 1
})

/** Prints the problem and fails the process at its end. The append is not refused: the service would only retry it. */
export const report = (problem: string): void => {
  broken = true
  process.stderr.write(`${BREAKS} ${problem}\n`)
}

interface Appends {
  append(stream: string, facts: readonly NewEvent[], ...rest: readonly unknown[]): Promise<unknown>
}

/** Makes every store of a class check the facts that are appended to it. */
export const checkAppends = (prototype: Appends): void => {
  const { append } = prototype
  prototype.append = function (stream, facts, ...rest) {
    for (const fact of facts) {
      const problem = problemOf(fact)
      if (problem !== undefined) report(`${problem} (appended to ${stream})`)
    }
    return append.call(this, stream, facts, ...rest)
  }
}
