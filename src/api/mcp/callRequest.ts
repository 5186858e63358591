import { isAppError, messageOf } from '../../errors.ts'
import { isObject } from '../../events/isObject.ts'
import type { EmittedData, StoredCall } from '../../commands/tools/callTool.ts'
import type { Ask } from '../route.ts'
import { openStream } from '../routes/streams.ts'
import type { SseReply } from '../streams/sse.ts'
import { apiTools } from './apiTools.ts'
import { type Calling, mistakeInCall, resultOfCall, storeFunctionCall, toolFor } from './functionTools.ts'
import {
  type Answer,
  internalError,
  invalidParams,
  isRequestId,
  type RequestId,
  responseOf,
  type RpcRequest,
  shown,
} from './messages.ts'
import { failure, mayUse, resultOf, type ToolResult } from './tool.ts'

/** Answers `tools/call`. Null: the answer is a stream, which has begun. */
export const answerCall = async (
  ask: Ask,
  request: RpcRequest,
  session: string | undefined,
): Promise<Answer | null> => {
  const begun = await begin(ask, request, session)
  if (!begun || !('stored' in begun)) return begun
  ask.forget(request.params)
  return { result: await resultFor(() => resultOfCall(ask, begun.stored)) }
}

/**
 * Answers a call, or stores it. An own function, because a function that waits keeps the arguments, and those of a stored
 * call are not needed any more.
 */
const begin = async (
  ask: Ask,
  { id, params }: RpcRequest,
  session: string | undefined,
): Promise<Answer | { readonly stored: StoredCall } | null> => {
  const { name, arguments: input = {} } = params
  if (typeof name !== 'string') return invalidParams(`name: expected the name of a tool, got ${shown(name)}`)
  if (!isObject(input)) return invalidParams(`arguments: expected an object, got ${shown(input)}`)
  const token = tokenIn(params)
  if (token !== undefined && !isRequestId(token))
    return invalidParams(`_meta.progressToken: expected a text or a whole number, got ${shown(token)}`)
  const api = apiTools.find((tool) => tool.name === name && mayUse(tool, ask.credential))
  if (api?.readOnly) ask.forget(params) // a list takes the same memory, and must not wait for that of its own request
  if (api) return { result: await resultFor(async () => resultOf(await api.call(ask, input))) }
  const tool = toolFor(ask.deps, ask.credential, name)
  // A tool that the credential may not call looks like one that does not exist.
  if (!tool && ask.deps.views.directory.unreadableIn(ask.credential.env_id).length > 0)
    return {
      result: failure('A build of the environment cannot be read, and the tool may be one of its functions'),
    }
  if (!tool)
    return invalidParams(`name: no tool ${shown(name)}; tools/list returns those that this key may call`)
  const mistake = mistakeInCall(tool, input)
  if (mistake !== undefined) return { result: failure(mistake) }
  const call = { tool, input, id, session }
  const takesStream = ask.ctx.get('Accept').includes('text/event-stream')
  if (token === undefined || !takesStream) {
    const stored = await storedOrRefused(ask, call)
    return 'refused' in stored ? { result: stored.refused } : stored
  }
  const calling = callingOf(ask, tool.fn.mcp?.service ?? '')
  await openStream(
    calling,
    () => storedOrRefused(calling, call),
    (client, stored) => serveCall(client, stored, { calling, id, token }),
    (stored) => 'stored' in stored && stored.stored.release(),
  )
  return null
}

const tokenIn = ({ _meta: meta }: RpcRequest['params']): unknown =>
  isObject(meta) ? meta['progressToken'] : undefined

/** What a stream needs of its request: not the body, whose memory is given back when the stream has begun. */
type StreamedCalling = Calling & Parameters<typeof openStream>[0]

/** The stream ends when the credential may no longer call the service. The run continues. */
const callingOf = (
  { ctx, deps, credential, caller, request_id }: Omit<StreamedCalling, 'hold'>,
  service: string,
): StreamedCalling => ({
  ctx,
  deps,
  credential,
  caller,
  request_id,
  hold: ({ gone, end }) =>
    deps.authenticator.hold({
      credential,
      gone,
      end,
      mayStill: ({ permissions }) => Promise.resolve(permissions.allows('mcp', 'execute', service)),
    }),
})

type Stored = { readonly stored: StoredCall } | { readonly refused: ToolResult }

const storedOrRefused = async (
  calling: Calling,
  call: Parameters<typeof storeFunctionCall>[1],
): Promise<Stored> => {
  try {
    return { stored: await storeFunctionCall(calling, call) }
  } catch (error) {
    return { refused: refusalOf(error) }
  }
}

/** Serves the progress of a call, then its result. When the client has gone, the run continues without it. */
const serveCall = async (
  client: SseReply,
  stored: Stored,
  { calling, id, token }: { calling: StreamedCalling; id: RequestId; token: RequestId },
): Promise<void> => {
  const progress = { onData: progressOf(client, token), gone: client.gone }
  const answer =
    'refused' in stored
      ? { result: stored.refused }
      : await streamedAnswer(calling, () => resultOfCall(calling, stored.stored, progress))
  client.end(frameOf(responseOf(id, answer)))
}

/** The result of a tool. A refusal is one too, because the model can then correct its call. */
const resultFor = async (work: () => Promise<ToolResult>): Promise<ToolResult> => {
  try {
    return await work()
  } catch (error) {
    return refusalOf(error)
  }
}

/** Throws any error that is no refusal. */
const refusalOf = (error: unknown): ToolResult => {
  if (!isAppError(error) || error.code === 'internal_server_error' || error.code === 'wrong_revision')
    throw error
  return failure(`${error.code}: ${error.message}`)
}

/** The reply has begun, so an unexpected error is logged here and not with the request. */
const streamedAnswer = async (
  { deps: { logger }, request_id }: Pick<Ask, 'deps' | 'request_id'>,
  work: () => Promise<ToolResult>,
): Promise<Answer> => {
  try {
    return { result: await resultFor(work) }
  } catch (error) {
    logger.error('A tool failed', { request_id, error: messageOf(error), stack: (error as Error).stack })
    return internalError(`An unexpected error occurred; the server log contains it with ${request_id}`)
  }
}

/** Characters of emitted data in one message, which people see while they wait. */
const MAX_MESSAGE = 2000

/** Sends emitted data as progress, as fast as the client reads it. */
const progressOf = (client: SseReply, progressToken: RequestId) => {
  let progress = 0
  return async (data: EmittedData): Promise<void> => {
    const { value, ref } = data.payload
    const text = ref ? `${ref.size} bytes` : typeof value === 'string' ? value : JSON.stringify(value ?? null)
    const params = {
      progressToken,
      progress: ++progress,
      message: `${data.data_type}: ${text}`.slice(0, MAX_MESSAGE).toWellFormed(),
      _meta: { 'svc/run_id': data.run_id, 'svc/data_type': data.data_type },
    }
    client.write(frameOf({ jsonrpc: '2.0', method: 'notifications/progress', params }))
    await client.flushed()
  }
}

/** Without an id: a client that is cut off cannot resume, and reads the run instead. */
const frameOf = (message: unknown): Buffer =>
  Buffer.from(`event: message\ndata: ${JSON.stringify(message)}\n\n`)
