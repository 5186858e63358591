import * as assert from 'uvu/assert'
import type { Permissions } from '../../src/events/org.ts'
import { type Api, openApi } from '../support/http.ts'

export interface Session {
  session_id: string
  token: string
  permissions: Permissions
  metadata: unknown
  expires_at: string
  created_at: string
}

export interface ServiceKey {
  service_key_id: string
  name: string
  description: string
  token: string
  permissions: Permissions
  metadata: unknown
  expires_at: string | null
  revoked_at: string | null
  last_used_at: string | null
  created_at: string
}

/** The API with what was issued just now. */
export const as = ({ url }: Api, { token }: { token: string }): Api => openApi(url, token)

export const newSession = (api: Api, permissions: Permissions, more: object = {}): Promise<Session> =>
  api.post('/sessions', { permissions, ...more })

export const newServiceKey = (api: Api, permissions: Permissions, more: object = {}): Promise<ServiceKey> =>
  api.post('/service-keys', { permissions, ...more })

/** The request is refused with this status and code. */
export const isRefusedWith = async (
  api: Api,
  [method, path, body]: readonly [method: string, path: string, body?: unknown],
  [status, code]: readonly [number, string],
): Promise<string> => {
  const refusal = await api.refused(method, path, body)
  assert.equal([refusal.status, refusal.code], [status, code], `${method} ${path}`)
  return refusal.message
}
