import { writeFileSync } from 'node:fs'
import type { OpenApiDocument } from '../../src/api/openapi/document.ts'
import { toOpenApi } from '../../src/api/openapi/document.ts'
import type { JsonSchema } from '../../src/api/openapi/jsonSchema.ts'
import { allRoutes } from '../../src/api/routes/index.ts'

/** The generated types of `svc/client`. `npm run client:types` writes them. */
export const path = new URL('../../src/client/api.ts', import.meta.url)

const HEADER = `/**
 * Generated from the OpenAPI document by \`npm run client:types\`; do not edit. \`test/client/apiTypes.test.ts\` checks
 * that it is up to date.
 */

/** One page of a list. */
export interface Page<Item> {
  readonly data: readonly Item[]
  readonly pagination: Pagination
}
`

/** The types of the resources and of the operations of an environment, in TypeScript. */
export const apiTypes = (): string => {
  const document = JSON.parse(JSON.stringify(toOpenApi(allRoutes, { version: '0' }))) as OpenApiDocument
  const operations = Object.entries(document.paths).flatMap(([route, methods]) =>
    route.startsWith('/v1/')
      ? Object.entries(methods).map(([method, operation]) =>
          operationOf(`${method.toUpperCase()} ${route}`, operation),
        )
      : [],
  )
  const text = operations.join('')
  const schemas = document.components['schemas'] as Readonly<Record<string, JsonSchema>>
  return [
    HEADER,
    ...usedIn(text, schemas).map((name) => `\n${declaration(name, schemas[name] ?? {})}\n`),
    '\n/** Every operation of an environment: its input, and the data of its reply. */\nexport interface Operations {\n',
    text,
    '}\n',
  ].join('')
}

/** The names of the schemas that the operations need, with those that these need, in the order of the document. */
const usedIn = (text: string, schemas: Readonly<Record<string, JsonSchema>>): string[] => {
  const used = new Set(['Pagination'])
  const add = (part: string) => {
    for (const [, name = ''] of withoutComments(part).matchAll(/\b([A-Z]\w+)\b/g)) {
      const schema = schemas[name]
      if (!schema || used.has(name)) continue
      used.add(name)
      add(typeOf(schema, 0))
    }
  }
  add(text)
  return Object.keys(schemas).filter((name) => used.has(name))
}

const withoutComments = (text: string): string => text.replaceAll(/\/\*\*.*?\*\//gs, '')

const declaration = (name: string, schema: JsonSchema): string => {
  const type = typeOf(schema, 0)
  return `${commentOf(schema, 0)}export ${schema['properties'] ? `interface ${name} ${type}` : `type ${name} = ${type}`}`
}

const operationOf = (name: string, operation: JsonSchema): string => {
  const {
    parameters = [],
    requestBody,
    responses,
    summary,
  } = operation as {
    readonly parameters?: readonly {
      name: string
      in: string
      required?: boolean
      schema: JsonSchema
      description?: string
    }[]
    readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema?: JsonSchema }>> }
    readonly responses: Readonly<Record<string, unknown>>
    readonly summary: string
  }
  const partOf = (where: string) => {
    const found = parameters.filter((parameter) => parameter.in === where)
    if (found.length === 0) return []
    const required = found.filter((parameter) => parameter.required).map((parameter) => parameter.name)
    const properties = Object.fromEntries(
      found.map((parameter) => [parameter.name, { description: parameter.description, ...parameter.schema }]),
    )
    const type = typeOf({ type: 'object', properties, required }, 2)
    return [`    readonly ${where}${required.length > 0 ? '' : '?'}: ${type}\n`]
  }
  return [
    `${commentOf({ description: summary }, 1)}  ${JSON.stringify(name).replaceAll('"', "'")}: {\n`,
    ...partOf('path'),
    ...partOf('query'),
    ...(requestBody ? [bodyOf(requestBody.content)] : []),
    `    readonly reply: ${replyOf(responses)}\n`,
    '  }\n',
  ].join('')
}

const bodyOf = (content: Readonly<Record<string, { readonly schema?: JsonSchema }>>): string => {
  const json = content['application/json']?.schema
  if (json) return `    readonly body: ${typeOf(json, 2)}\n`
  return content['multipart/form-data']
    ? '    readonly body: FormData\n'
    : '    readonly body: Blob | ArrayBuffer | Uint8Array<ArrayBuffer> | string\n    /** The media type of the body. */\n    readonly type: string\n'
}

/** JSON replies have their data in an envelope; other replies are returned as they are. */
const replyOf = (responses: Readonly<Record<string, unknown>>): string => {
  const [status, success] = Object.entries(responses).find(([code]) => code.startsWith('2')) ?? []
  if (status === '204') return 'undefined'
  const { content } = success as {
    readonly content?: Readonly<Record<string, { readonly schema?: JsonSchema }>>
  }
  const schema = content?.['application/json']?.schema
  const properties = schema?.['properties'] as Readonly<Record<string, JsonSchema>> | undefined
  if (!properties?.['data']) return 'Response'
  return properties['pagination']
    ? `Page<${typeOf(properties['data']['items'] as JsonSchema, 2)}>`
    : typeOf(properties['data'], 2)
}

const SCALARS: Readonly<Record<string, string>> = {
  string: 'string',
  integer: 'number',
  number: 'number',
  boolean: 'boolean',
  null: 'null',
}

/** The type of a JSON Schema of the document, whose objects begin at this depth of indentation. */
const typeOf = (schema: JsonSchema, depth: number): string => {
  const {
    $ref,
    const: only,
    enum: values,
    anyOf,
    oneOf,
    type,
    items,
    properties,
    additionalProperties,
  } = schema
  if (typeof $ref === 'string') return $ref.split('/').at(-1) ?? ''
  if (only !== undefined) return literal(only)
  if (Array.isArray(values)) return union(values.map(literal))
  const members = (anyOf ?? oneOf) as readonly JsonSchema[] | undefined
  if (members) return union(members.map((member) => typeOf(member, depth)))
  if (Array.isArray(type))
    return union(type.map((each) => typeOf({ ...schema, type: each as string }, depth)))
  if (type === 'array') {
    const item = typeOf((items as JsonSchema | undefined) ?? {}, depth)
    return `readonly ${/[ |]/.test(item) && !item.startsWith('{') ? `(${item})` : item}[]`
  }
  if (type !== 'object') return SCALARS[String(type)] ?? 'unknown'
  if (!properties && typeof additionalProperties === 'object')
    return `{ readonly [name: string]: ${typeOf(additionalProperties as JsonSchema, depth)} }`
  if (!properties) return '{ readonly [name: string]: unknown }'
  return objectOf(properties as Readonly<Record<string, JsonSchema>>, schema['required'], depth)
}

const objectOf = (
  properties: Readonly<Record<string, JsonSchema>>,
  required: unknown,
  depth: number,
): string => {
  const needed = new Set(Array.isArray(required) ? (required as readonly string[]) : [])
  const indent = '  '.repeat(depth + 1)
  const lines = Object.entries(properties).map(([name, schema]) => {
    const key = /^[A-Za-z_]\w*$/.test(name) ? name : `'${name}'`
    return `${commentOf(schema, depth + 1)}${indent}readonly ${key}${needed.has(name) ? '' : '?'}: ${typeOf(schema, depth + 1)}\n`
  })
  return `{\n${lines.join('')}${'  '.repeat(depth)}}`
}

const literal = (value: unknown): string =>
  typeof value === 'string' ? `'${value.replaceAll("'", "\\'")}'` : String(value)

const union = (types: readonly string[]): string =>
  types.includes('unknown') ? 'unknown' : [...new Set(types)].join(' | ')

const commentOf = ({ description }: JsonSchema, depth: number): string =>
  typeof description === 'string'
    ? `${'  '.repeat(depth)}/** ${description.replaceAll(/\s*\n\s*/g, ' ').replaceAll('*/', '*\\/')} */\n`
    : ''

if (import.meta.main) writeFileSync(path, apiTypes())
