import Type from 'typebox'
import { isAppError } from '../../errors.ts'
import { parseJson } from '../http/body.ts'
import { checkHead } from '../mcp/head.ts'
import { route } from '../route.ts'

/** One message of JSON-RPC. It is checked where it is read: its mistakes are JSON-RPC errors. */
const Message = Type.Unknown({
  description: 'One message of JSON-RPC 2.0',
  documented: {
    type: 'object',
    required: ['jsonrpc'],
    properties: {
      jsonrpc: { type: 'string' },
      id: { type: ['string', 'integer'] },
      method: { type: 'string' },
      params: { type: 'object' },
    },
    additionalProperties: false,
  },
})

/** A body that is no JSON becomes its error, which `messageOf` expects. */
const parseMessage = (json: Buffer): unknown => {
  try {
    return parseJson(json)
  } catch (error) {
    if (isAppError(error)) return error
    throw error
  }
}

export const mcpRoutes = [
  route({
    method: 'POST',
    path: '/mcp',
    operationId: 'sendMcpMessage',
    summary: 'Send a message of the Model Context Protocol',
    description:
      'The streamable HTTP transport of MCP, for AI agents. Functions with the metadata `mcp` are tools, and so are reads of the ' +
      'environment. A credential sees the tools that it may use: `execute` on `mcp:{service}` for functions. A call with a ' +
      '`progressToken` is answered by `text/event-stream`; a notification gets 202.',
    tag: 'MCP',
    needs: [],
    body: Message,
    parseBody: parseMessage,
    example: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
    errors: ['quota_exceeded'],
    reply: {
      kind: 'bare',
      description: 'The response, which may be an error of JSON-RPC',
      also: { status: 202, description: 'The notification was accepted', headers: {} },
    },
    handle: async (ask) => {
      const session = checkHead(ask.ctx, ask.deps)
      // Most nodes never serve MCP and need their memory for runs.
      const { serveMessage } = await import('../mcp/serveMessage.ts')
      return serveMessage({ ...ask, params: {} }, session)
    },
  }),
]
