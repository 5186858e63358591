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

/** The environment of a page of the dashboard, and what the page may do there. */
const WITHOUT_READ = 'Null without the permission `read` on `env`'

export const SignIn = Type.Object({
  session_id: nullable(Type.String({ format: 'uuid', description: 'Null for a key' })),
  env_id: Uuid,
  env_name: nullable(Type.String({ description: WITHOUT_READ })),
  org_id: nullable(Type.String({ format: 'uuid', description: WITHOUT_READ })),
  permissions: Permissions,
  expires_at: nullable(Timestamp),
})

export const SignInTicket = Type.Object({
  ticket: Type.String({ description: 'Valid for one sign-in, returned only in this reply' }),
  expires_at: Timestamp,
})

export const OperatorSignIn = Type.Object({ expires_at: Timestamp })
