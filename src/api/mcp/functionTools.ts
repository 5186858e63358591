import { randomUUID } from 'node:crypto'
import { type Progress, runStored, storeCall, type StoredCall } from '../../commands/tools/callTool.ts'
import type { Credential } from '../../access/credential.ts'
import { isObject } from '../../events/isObject.ts'
import { payloadOf } from '../../events/payload.ts'
import type { RunError } from '../../events/run.ts'
import { mistakeInInput } from '../../events/toolInput.ts'
import { holding } from '../../loops/byteBudget.ts'
import type { Wired } from '../../projections/wiring.ts'
import type { ApiDeps } from '../deps.ts'
import type { Ask } from '../route.ts'
import type { RequestId } from './messages.ts'
import { failure, MAX_RESULT_BYTES, type ToolResult } from './tool.ts'

const mayCall = ({ permissions }: Pick<Credential, 'permissions'>, { fn }: Wired): boolean =>
  permissions.allows('mcp', 'execute', fn.mcp?.service)

/** Yields the functions of the environment that the credential may call, in the order of the names of their tools. */
export function* toolsAfter(
  { views: { directory } }: Pick<ApiDeps, 'views'>,
  credential: Credential,
  last = '',
): Generator<readonly [name: string, tool: Wired]> {
  for (const [name, tool] of directory.toolsOf(credential.env_id))
    if (name > last && mayCall(credential, tool)) yield [name, tool]
}

/** The function that a tool is; undefined also if the credential may not call it. */
export const toolFor = (
  { views: { directory } }: Pick<ApiDeps, 'views'>,
  credential: Credential,
  name: string,
): Wired | undefined => {
  const tool = directory.toolsOf(credential.env_id).get(name)
  return tool && mayCall(credential, tool) ? tool : undefined
}

const ANY_OBJECT = { type: 'object' }

export const describeFunction = (name: string, { fn, project }: Wired) => ({
  name,
  title: `${fn.ns}/${fn.var}`,
  description: fn.mcp?.description ?? '',
  inputSchema: listedSchema(fn.mcp?.input ?? ANY_OBJECT),
  _meta: { 'svc/fn': `${fn.ns}/${fn.var}`, 'svc/project': project.name },
})

/**
 * A schema in the words that all clients read: that of the official SDK refuses a whole list if a property of one tool is
 * `true` or `false`.
 */
const listedSchema = (schema: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> => {
  const { properties } = schema
  if (!isObject(properties)) return schema
  const named = Object.entries(properties).map(
    ([name, part]) => [name, part === true ? {} : part === false ? { not: {} } : part] as const,
  )
  return { ...schema, properties: Object.fromEntries(named) }
}

/** What is wrong with the arguments of a call, which then starts no run; undefined if they are valid. */
export const mistakeInCall = ({ fn }: Wired, input: unknown): string | undefined =>
  mistakeInInput(fn.mcp?.input ?? ANY_OBJECT, input, 'arguments')

interface Call {
  readonly tool: Wired
  readonly input: unknown
  readonly id: RequestId
  readonly session: string | undefined
}

/** What a call needs of its request after its input is stored. */
export type Calling = Pick<Ask, 'deps' | 'credential' | 'caller'>

/** Stores the input of a call of a function. `resultOfCall` or `release` must follow. Rejects with an `AppError`. */
export const storeFunctionCall = (
  { deps, credential, caller }: Calling,
  { tool, input, id, session }: Call,
): Promise<StoredCall> =>
  storeCall(
    deps,
    {
      tool,
      input: isObject(input) ? input : {},
      defaultTimeoutMs: deps.webhookTimeoutMs,
      // Without a session, no notification can name the call.
      request: { credential_id: credential.id, session_id: session ?? randomUUID(), request_id: id },
    },
    caller.cause,
  )

/** Runs a function and returns its result. Rejects with an `AppError`. */
export const resultOfCall = async (
  { deps, credential, caller: { cause } }: Calling,
  stored: StoredCall,
  progress?: Progress,
): Promise<ToolResult> => {
  const { run_id, ending } = await runStored(deps, stored, { cause, progress })
  const _meta = { 'svc/run_id': run_id }
  switch (ending.type) {
    case 'RunSucceeded': {
      const { value, ref } = payloadOf('result', ending)
      if (!ref) return { ...succeeded(value ?? null), _meta }
      if (ref.size > MAX_RESULT_BYTES)
        return {
          ...failure(
            `The run succeeded, but its result has ${ref.size} bytes, more than ${MAX_RESULT_BYTES}: read it with GET /v1/runs/${run_id}`,
          ),
          _meta,
        }
      const owner = deps.memory.ownerOf(credential.env_id)
      const loaded = await holding(deps.memory.values, { owner, bytes: 4 * ref.size }, () =>
        deps.payloads.load({ ref }),
      )
      return { ...succeeded(loaded), _meta }
    }
    case 'RunFailed':
      return failed(ending.error, run_id, `${deps.publicUrl()}/ui/runs/${run_id}`)
    case 'RunCancelled':
      return { ...failure(`The run ${run_id} was cancelled`), _meta }
    default:
      return ending satisfies never
  }
}

/** A result that is no object becomes the field `result`: the protocol allows objects only. */
const succeeded = (value: unknown): ToolResult => ({
  content: [{ type: 'text', text: typeof value === 'string' ? value : JSON.stringify(value) }],
  structuredContent: isObject(value) ? value : { result: value },
})

/** The message of a failed run, its place in the source of the author, and the page of the dashboard for a person. */
const failed = ({ code, message, name, location }: RunError, run_id: string, page: string): ToolResult => {
  const place = location && `${location.file}:${location.line}:${location.column}`
  const lines = [
    `${name === undefined || message.startsWith(name) ? '' : `${name}: `}${message}`,
    ...(place === undefined ? [] : [`at ${place}`]),
    ...(location?.snippet === undefined ? [] : [location.snippet.trim()]),
    `The run ${run_id} failed with ${code}: ${page}`,
  ]
  const structuredContent = { error: { code, message, ...(location && { location }) }, run_id }
  return failure(lines.join('\n'), { structuredContent, _meta: { 'svc/run_id': run_id } })
}
