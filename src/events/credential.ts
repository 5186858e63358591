import Type from 'typebox'
import { Permissions } from './org.ts'
import { fact, Id, Time } from './scalars.ts'

/** Both kinds are issued under an API key. `mac` as on `ApiKeyCreated`: the secret itself is stored nowhere (I6). */
const issued = { api_key_id: Id, mac: Type.String(), permissions: Permissions }

export const SessionCreated = fact('SessionCreated', {
  session_id: Id,
  ...issued,
  /** Any JSON. */
  metadata: Type.Optional(Type.Unknown()),
  expires_at: Time,
})

/** They hold no longer. Those that expired are told of when the next one is made, so that nobody need look for them. */
export const SessionsEnded = fact('SessionsEnded', {
  api_key_id: Id,
  session_ids: Type.Array(Id),
  reason: Type.Union([Type.Literal('revoked'), Type.Literal('expired')]),
})

export const ServiceKeyCreated = fact('ServiceKeyCreated', {
  service_key_id: Id,
  ...issued,
  name: Type.String(),
  description: Type.String(),
  /** Ciphertext of its JSON (I6). */
  metadata: Type.Optional(Type.String()),
  /** Null: never. */
  expires_at: Type.Union([Time, Type.Null()]),
})

export const ServiceKeysRevoked = fact('ServiceKeysRevoked', {
  api_key_id: Id,
  service_key_ids: Type.Array(Id),
  at: Time,
})

/** Somebody came with the key; told once a minute at most. */
export const ServiceKeyUsed = fact('ServiceKeyUsed', { service_key_id: Id, api_key_id: Id, at: Time })
