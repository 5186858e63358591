import Type, { type Static } from 'typebox'
import { Id } from './scalars.ts'

export const Plan = Type.Union([
  Type.Literal('free'),
  Type.Literal('starter'),
  Type.Literal('pro'),
  Type.Literal('scale'),
  Type.Literal('self_host'),
])
export type Plan = Static<typeof Plan>

/** A JSON map from `type:path` to actions (SPEC.md, Permission map). */
export const Permissions = Type.Record(Type.String(), Type.Array(Type.String()))
export type Permissions = Static<typeof Permissions>

export const OrgCreated = Type.Object({
  type: Type.Literal('OrgCreated'),
  org_id: Id,
  slug: Type.String(),
  name: Type.String(),
  plan: Plan,
})

export const EnvCreated = Type.Object({
  type: Type.Literal('EnvCreated'),
  env_id: Id,
  org_id: Id,
  name: Type.String(),
})

/** `mac` is HMAC-SHA-256 of the secret under the pepper, hex; the secret itself is stored nowhere (I6). */
export const ApiKeyCreated = Type.Object({
  type: Type.Literal('ApiKeyCreated'),
  api_key_id: Id,
  env_id: Id,
  name: Type.String(),
  mac: Type.String(),
  permissions: Permissions,
})
