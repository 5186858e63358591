import { randomUUID } from 'node:crypto'
import type { Context } from 'koa'
import { cancelTool } from '../../commands/tools/cancelTool.ts'
import { AppError } from '../../errors.ts'
import { isToolName } from '../../events/toolName.ts'
import { own, type Ask, type Reply } from '../route.ts'
import { apiTools } from './apiTools.ts'
import { answerCall } from './callRequest.ts'
import { describeFunction, toolsAfter } from './functionTools.ts'
import { SESSION_HEADER, versionFor } from './head.ts'
import {
  type Answer,
  invalidParams,
  isRequestId,
  messageOf,
  methodNotFound,
  type RequestId,
  responseOf,
  type RpcRequest,
  shown,
} from './messages.ts'
import { type ApiTool, mayUse } from './tool.ts'

/** Tools in one page of the list. */
const PAGE = 100

/** Replies to one message of a client. */
export const serveMessage = async (ask: Ask, session: string | undefined): Promise<Reply> => {
  const { ctx } = ask
  const message = messageOf(ask.body)
  switch (message.kind) {
    case 'invalid':
      return send(ctx, message.id, message.answer)
    case 'response':
      return accept(ctx)
    case 'notification':
      if (message.method === 'notifications/cancelled') await cancel(ask, message.params, session)
      return accept(ctx)
    case 'request': {
      const answer = await answerTo(ask, message, session)
      return answer ? send(ctx, message.id, answer) : own
    }
    default:
      return message satisfies never
  }
}

const send = (ctx: Context, id: RequestId | null, answer: Answer): Reply => {
  ctx.status = 200
  ctx.type = 'application/json'
  ctx.body = responseOf(id, answer)
  return own
}

const accept = (ctx: Context): Reply => {
  ctx.body = null
  ctx.status = 202
  return own
}

const answerTo = async (
  ask: Ask,
  request: RpcRequest,
  session: string | undefined,
): Promise<Answer | null> => {
  const { method, params } = request
  switch (method) {
    case 'initialize':
      ask.ctx.set(SESSION_HEADER, randomUUID())
      return { result: initialized(ask, params['protocolVersion']) }
    case 'ping':
      return { result: {} }
    case 'tools/list':
      return listTools(ask, params['cursor'])
    case 'tools/call':
      await ask.deps.views.settled('builds', 'projects')
      return answerCall(ask, request, session)
    default:
      return methodNotFound(
        `method: expected one of initialize, ping, tools/list, tools/call, got ${shown(method)}`,
      )
  }
}

const initialized = ({ deps: { about } }: Ask, asked: unknown) => ({
  protocolVersion: versionFor(asked),
  capabilities: { tools: {} },
  serverInfo: { name: 'svc', title: 'svc', version: about.version },
  instructions:
    'Runs TypeScript functions that events, schedules, webhooks and calls start. The tools with _meta svc/fn are functions ' +
    'of this environment: each call is a run. The others read the environment; docs_search finds how svc works. Begin with ' +
    'list_runs, and with why or get_run for one run.',
})

const listTools = async ({ deps, credential }: Ask, cursor: unknown): Promise<Answer> => {
  if (cursor !== undefined && !isToolName(cursor))
    return invalidParams(`cursor: expected the nextCursor of a list, got ${shown(cursor)}`)
  await deps.views.settled('builds', 'projects')
  // The cursor is the last name, so a deployment between two pages neither repeats a tool nor leaves one out.
  const left = [
    ...apiTools
      .filter((tool) => mayUse(tool, credential) && (cursor === undefined || tool.name > cursor))
      .map(describe),
    ...toolsAfter(deps, credential, cursor)
      .take(PAGE + 1)
      .map(([name, tool]) => describeFunction(name, tool)),
  ].sort((a, b) => (a.name < b.name ? -1 : 1))
  const tools = left.slice(0, PAGE)
  const last = tools.at(-1)
  return { result: { tools, ...(last && left.length > PAGE && { nextCursor: last.name }) } }
}

/** Clients ask their user before they call a tool that is not read-only: functions may do anything. */
const describe = ({ name, title, description, inputSchema, readOnly }: ApiTool) => ({
  name,
  title,
  description,
  inputSchema,
  annotations: { title, readOnlyHint: readOnly },
})

/** Cancels the run of a call of this session, on whatever node it waits. */
const cancel = async (
  { deps, credential, caller }: Ask,
  { requestId }: Readonly<Record<string, unknown>>,
  session: string | undefined,
): Promise<void> => {
  if (session === undefined)
    throw new AppError(
      'bad_request',
      `${SESSION_HEADER}: expected the session of the call to cancel, got none`,
    )
  if (!isRequestId(requestId))
    throw new AppError(
      'bad_request',
      `params.requestId: expected the id of a request, got ${shown(requestId)}`,
    )
  const request = { credential_id: credential.id, session_id: session, request_id: requestId }
  await cancelTool(deps, request, caller.cause)
}
