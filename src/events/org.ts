import Type, { type Static } from 'typebox'
import { fact, Id, Text, Time } from './scalars.ts'

export const Plan = Type.Union([
  Type.Literal('free'),
  Type.Literal('starter'),
  Type.Literal('pro'),
  Type.Literal('scale'),
  Type.Literal('self_host'),
])
export type Plan = Static<typeof Plan>

/** A JSON map from `type:path` to actions (SPEC.md, Permission map). */
export const Permissions = Type.Record(Type.String(), Type.Immutable(Type.Array(Text)))
export type Permissions = Static<typeof Permissions>

/** `creation_id`: the same in each attempt of one request, so that a repetition finds what it created. */
export const OrgCreated = fact('OrgCreated', {
  org_id: Id,
  slug: Text,
  name: Text,
  plan: Plan,
  creation_id: Type.Optional(Id),
})

/** Only the changed fields. */
export const OrgChanged = fact('OrgChanged', {
  org_id: Id,
  name: Type.Optional(Text),
  plan: Type.Optional(Plan),
  team_members: Type.Optional(Type.Integer()),
})

/** `env_ids`: every environment that the organization had when its deletion began. All of them were deleted before. */
export const OrgDeleted = fact('OrgDeleted', { org_id: Id, env_ids: Type.Immutable(Type.Array(Id)) })

/** `creation_id`: as in `OrgCreated`. */
export const EnvCreated = fact('EnvCreated', {
  env_id: Id,
  org_id: Id,
  name: Text,
  creation_id: Type.Optional(Id),
})

/** The environment no longer exists for clients. Its content is removed afterwards. */
export const EnvDeleted = fact('EnvDeleted', { env_id: Id })

/**
 * The content of a deleted environment was removed. `final`: nothing that was in progress at its deletion can add content
 * any more.
 */
export const EnvPurged = fact('EnvPurged', { env_id: Id, final: Type.Boolean() })

/**
 * An import adds facts to an environment that exists, which nobody uses until the import is complete. `empty`: there was nothing
 * in it before. A later import takes the place of one in progress: from then on, only it ends the pause. `import_id` is absent in
 * facts of earlier versions.
 */
export const ImportBegun = fact('ImportBegun', {
  env_id: Id,
  empty: Type.Boolean(),
  import_id: Type.Optional(Id),
})

/** An import into an environment with content failed, and the environment is used again. */
export const ImportAbandoned = fact('ImportAbandoned', { env_id: Id })

/** An operator imported the environment from another installation; the numbers are those of the file. */
export const EnvImported = fact('EnvImported', {
  env_id: Id,
  keys: Type.Integer(),
  blobs: Type.Integer(),
  facts: Type.Integer(),
})

/** A client of the environment stream used this name of a consumer for the first time. */
export const ConsumerNamed = fact('ConsumerNamed', { name: Text, at: Type.Optional(Time) })

/** A client used the name again; stored once a day for each name. */
export const ConsumerUsed = fact('ConsumerUsed', { name: Text, at: Time })

/** No client used the name for a long time, so its position is forgotten. */
export const ConsumerForgotten = fact('ConsumerForgotten', { name: Text })

/** `mac` is HMAC-SHA-256 of the secret under the pepper, hex; the secret itself is stored nowhere (I6). */
export const ApiKeyCreated = fact('ApiKeyCreated', {
  api_key_id: Id,
  env_id: Id,
  name: Text,
  mac: Type.String(),
  permissions: Permissions,
})

/**
 * Only the changed fields. A disabled key and its sessions and service keys are invalid until it is enabled again. From
 * `expires_at` on they are invalid too; null: the key does not expire.
 */
export const ApiKeyChanged = fact('ApiKeyChanged', {
  api_key_id: Id,
  name: Type.Optional(Text),
  enabled: Type.Optional(Type.Boolean()),
  permissions: Type.Optional(Permissions),
  expires_at: Type.Optional(Type.Union([Time, Type.Null()])),
})

/** The key was deleted, and with it everything that was issued under it. */
export const ApiKeyDeleted = fact('ApiKeyDeleted', { api_key_id: Id })
