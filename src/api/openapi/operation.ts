import type { Needs, Route } from '../route.ts'
import { type JsonSchema, toJsonSchema } from './jsonSchema.ts'
import { operationIdOf } from './operationId.ts'
import { parametersOf } from './parameters.ts'
import { repliesOf } from './replies.ts'

/** One route as an operation of the document. */
export const operationOf = (route: Route): JsonSchema => {
  const { tag, summary, needs } = route
  const description = descriptionOf(route)
  const parameters = parametersOf(route)
  return {
    operationId: operationIdOf(route),
    tags: [tag],
    summary,
    ...(description !== '' && { description }),
    ...(needs === null && { security: [] }),
    ...(parameters.length > 0 && { parameters }),
    ...bodyOf(route),
    responses: repliesOf(route),
  }
}

const bodyOf = ({ body, form, rawBody }: Route): JsonSchema => {
  if (body) return { requestBody: { required: true, content: { 'application/json': { schema: toJsonSchema(body) } } } }
  if (form) return { requestBody: { required: true, content: { 'multipart/form-data': { schema: toJsonSchema(form) } } } }
  return rawBody === undefined ? {} : { requestBody: { content: { [rawBody]: {} } } }
}

const descriptionOf = ({ description, needs, path }: Route): string => {
  const permissions = (needs ?? []).map((need) => permissionOf(need, path))
  return [
    ...(description === undefined ? [] : [description]),
    ...(permissions.length > 0 ? [`Permission: ${permissions.join(' and ')}.`] : []),
  ].join('\n\n')
}

/** As it stands in a permission map (SPEC.md, Permission map). */
const permissionOf = ({ type, action, path: narrowed }: Needs, path: string): string => {
  const part = narrowed ? partOf(type, path) : undefined
  return `\`${action}\` on \`${type}:*\`${part === undefined ? '' : ` or on \`${type}:\` and ${part}`}`
}

const partOf = (type: string, path: string): string => {
  if (path.includes('/:project')) return "the project's id or name"
  return type === 'event' ? 'the event type' : `the ${type}'s id`
}
