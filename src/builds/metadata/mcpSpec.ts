import type { FunctionSpec } from '../../events/project.ts'
import { mistakeInSchema } from '../../events/toolSchema.ts'
import { anyTextOf, BadMetadata, expected, fieldsOf } from './metadataFields.ts'
import { serviceNameOf } from './serviceName.ts'

/** Returns the tool of a function for clients of MCP. Throws `BadMetadata`. */
export const mcpOf = (value: unknown, where: string): NonNullable<FunctionSpec['mcp']> => {
  const { service, description, input } = fieldsOf(value, `${where}Expected mcp to be an object`)
  return {
    service: serviceNameOf(service, `${where}mcp.service`),
    description: descriptionOf(description, `${where}mcp.description`),
    ...(input !== undefined && input !== null && { input: inputOf(input, where) }),
  }
}

/** A model selects a tool by its description. */
const descriptionOf = (value: unknown, what: string): string => {
  const text = anyTextOf(value, what).trim()
  if (text !== '') return text
  throw new BadMetadata(expected(what, 'to describe the tool to a model', value))
}

const inputOf = (value: unknown, where: string): Readonly<Record<string, unknown>> => {
  const mistake = mistakeInSchema(value, 'mcp.input')
  if (mistake) throw new BadMetadata(expected(`${where}${mistake.path}`, mistake.expectation, mistake.value))
  return fieldsOf(value, where)
}
