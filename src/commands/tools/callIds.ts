import { derivedId, type NewId } from '../../ids.ts'

/** A request of a client of MCP. */
export interface ToolRequest {
  readonly credential_id: string
  /** The session that the client got from `initialize`. The service stores none. */
  readonly session_id: string
  /** The id of the JSON-RPC request, which is unique in its session. */
  readonly request_id: string | number
}

/**
 * The ids of what a call creates. They follow from the request, so that any node can cancel the call of another node
 * without a shared table, and no credential can name the call of another one.
 */
export const callIdsOf =
  ({ credential_id, session_id, request_id }: ToolRequest): NewId =>
  (what) =>
    derivedId('mcp', credential_id, session_id, JSON.stringify(request_id), what)
