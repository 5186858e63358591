import type { Needs, Route } from '../route.ts'
import { type JsonSchema, toJsonSchema } from './jsonSchema.ts'
import { parametersOf } from './parameters.ts'
import { BINARY, repliesOf } from './replies.ts'

/** Converts one route to an operation of the document. */
export const operationOf = (route: Route): JsonSchema => {
  const { operationId, tag, summary, needs } = route
  const description = descriptionOf(route)
  const parameters = parametersOf(route)
  return {
    operationId,
    tags: [tag],
    summary,
    ...(description !== '' && { description }),
    ...(needs === null && { security: route.operator ? [{ operator: [] }] : [] }),
    ...(parameters.length > 0 && { parameters }),
    ...bodyOf(route),
    responses: repliesOf(route),
  }
}

const bodyOf = ({ method, body, form, rawBody, example, maxBodyBytes }: Route): JsonSchema => {
  if (body) {
    const content = { schema: toJsonSchema(body), ...(example !== undefined && { example }) }
    return {
      requestBody: {
        ...(maxBodyBytes !== undefined && { description: `At most ${maxBodyBytes} bytes` }),
        required: true,
        content: { 'application/json': content },
      },
    }
  }
  if (form)
    return {
      requestBody: { required: true, content: { 'multipart/form-data': { schema: toJsonSchema(form) } } },
    }
  // The body of such a request has no meaning (RFC 9110, 9.3).
  if (rawBody === undefined || method === 'GET' || method === 'DELETE') return {}
  return { requestBody: { content: { [rawBody]: { schema: BINARY } } } }
}

const descriptionOf = ({ description, needs, path }: Route): string => {
  const permissions = (needs ?? []).map((need) => permissionOf(need, path))
  return [
    ...(description === undefined ? [] : [description]),
    ...(permissions.length > 0 ? [`Permission: ${permissions.join(' and ')}.`] : []),
  ].join('\n\n')
}

const specialParts: Readonly<Record<string, string>> = { event: 'event_type', file: 'path' }

/** Formats a permission as in a permission map (SPEC.md, Permission map). */
const permissionOf = ({ type, action, path: narrowed }: Needs, path: string): string => {
  const part = narrowed && (path.includes('/:project') ? 'project' : (specialParts[type] ?? `${type}_id`))
  return `\`${action}\` on \`${type}:*\`${part ? ` or \`${type}:{${part}}\`` : ''}`
}
