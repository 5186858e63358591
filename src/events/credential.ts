import Type from 'typebox'
import { Permissions } from './org.ts'
import { fact, Id, Text, Time } from './scalars.ts'

/** The fields of both kinds, which are issued under an API key. `mac` is that of `ApiKeyCreated` (I6). */
const issued = { api_key_id: Id, mac: Type.String(), permissions: Permissions }

export const SessionCreated = fact('SessionCreated', {
  session_id: Id,
  ...issued,
  /** Any JSON. */
  metadata: Type.Optional(Type.Unknown()),
  expires_at: Time,
})

/** The sessions ended. The next creation of a session records the expired ones, so no process must search for them. */
export const SessionsEnded = fact('SessionsEnded', {
  api_key_id: Id,
  session_ids: Type.Array(Id),
  reason: Type.Union([Type.Literal('revoked'), Type.Literal('expired')]),
})

export const ServiceKeyCreated = fact('ServiceKeyCreated', {
  service_key_id: Id,
  ...issued,
  name: Text,
  description: Text,
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

/** The minimum time between two recorded uses of a service key, milliseconds. */
export const USE_RECORDED_EVERY_MS = 60_000

/** The key authenticated a request; recorded at most once a minute. */
export const ServiceKeyUsed = fact('ServiceKeyUsed', { service_key_id: Id, api_key_id: Id, at: Time })
