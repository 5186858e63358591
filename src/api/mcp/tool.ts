import type { Static, TObject } from 'typebox'
import type { Credential } from '../../access/credential.ts'
import { allowsSomewhere } from '../../access/permissions.ts'
import { AppError } from '../../errors.ts'
import { StoredJson } from '../../events/rawJson.ts'
import { demandNeeds } from '../http/admission.ts'
import { checkBody } from '../http/validate.ts'
import { closed } from '../http/closed.ts'
import type { Ask, CredentialRoute } from '../route.ts'

export interface ToolResult {
  readonly content: readonly { readonly type: 'text'; readonly text: string }[]
  readonly structuredContent?: Fields
  readonly isError?: true
  readonly _meta?: Fields
}

interface ToolNeeds {
  readonly type: string
  readonly action: string
  /** One path that suffices. Default: every path. */
  readonly path?: string
  /** The permission on any path suffices. The endpoint that the tool uses checks the path. */
  readonly somewhere?: true
}

/** Whether the credential may use a tool. */
export const mayUse = ({ needs }: Pick<ApiTool, 'needs'>, { permissions, granted }: Credential): boolean =>
  needs.every(({ type, action, path, somewhere }) =>
    somewhere ? allowsSomewhere(granted, type, action) : permissions.allows(type, action, path),
  )

/** A tool that reads or controls the environment of the credential. */
export interface ApiTool {
  readonly name: string
  readonly title: string
  readonly description: string
  /** The permissions without which the tool is neither listed nor called. */
  readonly needs: readonly ToolNeeds[]
  /** The tool changes nothing. */
  readonly readOnly: boolean
  /** JSON Schema of the arguments. */
  readonly inputSchema: Fields
  /** Checks the arguments, then does its work. Rejects with an `AppError` that the model gets. */
  readonly call: (ask: Ask, given: unknown) => Promise<Fields>
}

type Fields = Readonly<Record<string, unknown>>

/** Declares a tool. Unknown arguments are refused. */
export const apiTool = <Input extends TObject>({
  input,
  call,
  ...tool
}: Omit<ApiTool, 'inputSchema' | 'call'> & {
  readonly input: Input
  readonly call: (ask: Ask, input: Static<Input>) => Promise<Fields> | Fields
}): ApiTool => {
  const schema = closed(input) as Input
  const check = checkBody(schema, 'arguments')
  return { ...tool, inputSchema: plain(schema), call: async (ask, given) => call(ask, check(given)) }
}

/** The schema as JSON. Unlike in the OpenAPI document, nothing in it is a reference. */
const plain = (input: TObject): Fields =>
  JSON.parse(
    JSON.stringify(input, (key, value: unknown) => (key === 'documented' ? undefined : value)),
  ) as Fields

/** The endpoint of the API that a tool uses, so that it has the same checks and permissions. */
export const routeIn = (routes: readonly CredentialRoute[], operationId: string): CredentialRoute => {
  const found = routes.find((route) => route.operationId === operationId)
  if (found) return found
  throw new AppError('internal_server_error', `Expected an endpoint ${operationId} for credentials`)
}

/** The body of a tool is not that of the request, and the arguments of the tool remain until it returns. */
const forget = (): void => {}

/** Does what an endpoint does, with its validation and its permissions. Values of the query are texts. */
export const use = async (
  route: CredentialRoute,
  ask: Ask,
  given: {
    readonly params?: Readonly<Record<string, string>>
    readonly query?: Fields
    readonly body?: unknown
  },
): Promise<Fields> => {
  const { params = {}, query = {}, body } = given
  const texts = Object.fromEntries(Object.entries(query).map(([name, value]) => [name, String(value)]))
  const asked: Ask = {
    ...ask,
    params,
    query: route.checkQuery(texts),
    body: route.checkBody?.(body),
    forget,
  }
  await demandNeeds(route, asked)
  if (route.demand) await route.demand(asked)
  const reply = await route.handle(asked)
  switch (reply.kind) {
    case 'item':
      return reply.data as Fields
    case 'list': {
      const { kind: _, items, ...pagination } = reply
      const has_more = pagination.offset + items.length < pagination.total
      return { data: items, pagination: { ...pagination, has_more } }
    }
    default:
      throw new AppError('internal_server_error', `Expected a reply with data from ${route.operationId}`)
  }
}

/** The value, or a reference if it is so large that it is outside the log: no model reads that much. */
export const withoutStored = (data: Fields, href: string): Fields =>
  Object.fromEntries(
    Object.entries(data).flatMap(([name, value]) =>
      value instanceof StoredJson
        ? [
            [name, null],
            [`${name}_ref`, { size: value.to - value.from, href }],
          ]
        : [[name, value]],
    ),
  )

/** Bytes of the result of a tool as JSON. */
export const MAX_RESULT_BYTES = 1 << 20

/** The result of a tool of the environment. */
export const resultOf = (structuredContent: Fields): ToolResult => {
  const text = JSON.stringify(structuredContent)
  const bytes = Buffer.byteLength(text)
  if (bytes > MAX_RESULT_BYTES)
    return failure(`The result has ${bytes} bytes, more than ${MAX_RESULT_BYTES}: ask for fewer with limit`)
  return { content: [{ type: 'text', text }], structuredContent }
}

/** A result that the model reads as a failure. */
export const failure = (
  text: string,
  more: Pick<ToolResult, 'structuredContent' | '_meta'> = {},
): ToolResult => ({
  content: [{ type: 'text', text }],
  isError: true,
  ...more,
})
