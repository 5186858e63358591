import Type from 'typebox'
import { Permissions, ServiceKeyPermissions, Timestamp, Token, Uuid, nullable } from './parts.ts'

/** Keys and sessions. */

const apiKey = {
  api_key_id: Uuid,
  env_id: Uuid,
  name: Type.String(),
  enabled: Type.Boolean(),
  access: Type.Union([Type.Literal('full'), Type.Literal('restricted')]),
  permissions: Permissions,
  expires_at: nullable(Timestamp),
  created_at: Timestamp,
  updated_at: Timestamp,
}

export const ApiKey = Type.Object(apiKey)

export const NewApiKey = Type.Object({ ...apiKey, token: Token })

export const RotatedApiKey = Type.Object({ ...apiKey, token: Token, former: ApiKey })

const session = {
  session_id: Uuid,
  permissions: Permissions,
  metadata: Type.Unknown(),
  expires_at: Timestamp,
  created_at: Timestamp,
}

export const Session = Type.Object(session)

export const NewSession = Type.Object({ ...session, token: Token })

const serviceKey = {
  service_key_id: Uuid,
  name: Type.String(),
  description: Type.String(),
  permissions: ServiceKeyPermissions,
  metadata: Type.Unknown(),
  expires_at: nullable(Timestamp),
  revoked_at: nullable(Timestamp),
  last_used_at: nullable(Timestamp),
  created_at: Timestamp,
}

export const ServiceKey = Type.Object(serviceKey)

export const NewServiceKey = Type.Object({ ...serviceKey, token: Token })

export const RevokedCount = Type.Object({ revoked_count: Type.Integer() })
