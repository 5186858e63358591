import Type from 'typebox'
import { Permissions } from './org.ts'
import { Id, Time } from './scalars.ts'

/** Both kinds are issued under an API key. `mac` as on `ApiKeyCreated`: the secret itself is stored nowhere (I6). */
const issued = { api_key_id: Id, mac: Type.String(), permissions: Permissions }

export const SessionCreated = Type.Object({
  type: Type.Literal('SessionCreated'),
  session_id: Id,
  ...issued,
  /** Any JSON. */
  metadata: Type.Optional(Type.Unknown()),
  expires_at: Time,
})

/** They hold no longer. Those that expired are told of when the next one is made, so that nobody need look for them. */
export const SessionsEnded = Type.Object({
  type: Type.Literal('SessionsEnded'),
  api_key_id: Id,
  session_ids: Type.Array(Id),
  reason: Type.Union([Type.Literal('revoked'), Type.Literal('expired')]),
})

export const ServiceKeyCreated = Type.Object({
  type: Type.Literal('ServiceKeyCreated'),
  service_key_id: Id,
  ...issued,
  name: Type.String(),
  description: Type.String(),
  /** Ciphertext of its JSON (I6). */
  metadata: Type.Optional(Type.String()),
  /** Null: never. */
  expires_at: Type.Union([Time, Type.Null()]),
})

export const ServiceKeysRevoked = Type.Object({
  type: Type.Literal('ServiceKeysRevoked'),
  api_key_id: Id,
  service_key_ids: Type.Array(Id),
  at: Time,
})

/** Somebody came with the key; told once a minute at most. */
export const ServiceKeyUsed = Type.Object({
  type: Type.Literal('ServiceKeyUsed'),
  service_key_id: Id,
  api_key_id: Id,
  at: Time,
})
