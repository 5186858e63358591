import Type from 'typebox'
import { Plan } from '../../events/org.ts'
import { Timestamp, Uuid, nullable } from './parts.ts'

/** What the operator sees: keys, backups, read models, nodes. */

const MasterKeyId = Type.String({ description: 'A hash of a key that is derived from the master key' })

export const MasterKeyStatus = Type.Object({
  status: Type.Union([Type.Literal('idle'), Type.Literal('rotating')]),
  master_key_id: MasterKeyId,
  previous_master_key_id: nullable(MasterKeyId),
  started_at: nullable(Timestamp),
  ended_at: nullable(Timestamp),
  rewrapped: Type.Integer({ description: 'Number of keys that are wrapped with the current master key' }),
  remaining: Type.Integer({ description: 'Number of keys that are still wrapped with the previous one' }),
})

export const ImportedEnv = Type.Object({
  env_id: Uuid,
  org: Type.String({ description: 'Slug of the organization' }),
  env: Type.String({ description: 'Name of the environment' }),
  keys: Type.Integer({ description: 'Number of data keys in the file' }),
  blobs: Type.Integer({ description: 'Number of blobs in the file' }),
  facts: Type.Integer({ description: 'Number of facts in the file' }),
})

export const Backup = Type.Object({
  backup_id: Uuid,
  log_id: Type.String({ description: 'The id of the log, which changes when a loss is accepted' }),
  position: Type.Integer({ description: 'The last position of the log that the backup contains' }),
  master_key_id: MasterKeyId,
  canary: Type.String({ description: 'A text that only this master key opens' }),
  consumers: Type.Array(Type.Object({ group: Type.String(), position: Type.Integer() }), {
    description: 'The consumer groups, with the positions up to which they have everything',
  }),
})

const Position = Type.String({ description: 'Position in the log; empty: its start' })

const Behind = nullable(
  Type.Integer({ description: 'Events after the position; null if the event store cannot count them' }),
)

export const ReadModelStatus = Type.Object({
  name: Type.String(),
  version: Type.Integer(),
  state: Type.Union([Type.Literal('building'), Type.Literal('serving'), Type.Literal('rebuilding')]),
  position: Position,
  behind: Behind,
  documents: Type.Integer(),
  rebuild: nullable(
    Type.Object({
      state: Type.Union(
        (['waiting', 'building', 'comparing', 'replacing', 'done', 'failed'] as const).map((state) =>
          Type.Literal(state),
        ),
      ),
      verify: Type.Boolean(),
      from_version: nullable(
        Type.Integer({
          description: 'After an upgrade: the version whose documents are served until the rebuild is done',
        }),
      ),
      requested_at: Timestamp,
      ended_at: nullable(Timestamp),
      position: Position,
      behind: Behind,
      differences: nullable(
        Type.Integer({ description: 'Documents that differed; null if they were not compared' }),
      ),
      first_differences: Type.Array(
        Type.Object({
          id: Type.String(),
          before: Type.Unknown(),
          after: Type.Unknown(),
        }),
        { description: 'The first ten; a document is null where it is missing' },
      ),
      error: nullable(Type.String({ description: 'Why it failed, or why it waits' })),
    }),
  ),
})

export const AbandonedEvent = Type.Object({
  event_id: Uuid,
  env_id: Uuid,
  stream_id: Uuid,
  event_type: Type.String(),
  event_time: Timestamp,
  error: Type.Object({ code: Type.String(), message: Type.String() }),
  projects: Type.Optional(Type.Array(Uuid)),
  replayed_as: Type.Union([Uuid, Type.Null()]),
})

export const SkippedFact = Type.Object({
  read_model: Type.String({ description: 'The read model and its version' }),
  type: Type.String(),
  id: Type.String(),
  cursor: Type.String({ description: 'The position in the log' }),
  stream: Type.String(),
  revision: Type.Integer({ description: 'The position in the stream' }),
  at: Timestamp,
  error: Type.String(),
  skipped_at: Timestamp,
})

export const Org = Type.Object({
  org_id: Uuid,
  slug: Type.String(),
  name: Type.String(),
  plan: Plan,
  team_members: Type.Integer(),
  created_at: Timestamp,
})

export const EngineState = Type.Object({
  engine: Type.String({ description: 'event store, read models, blobs or Redis' }),
  kind: Type.String({ description: '`embedded`, or the kind of the external engine' }),
  answers: Type.Boolean(),
  since: nullable(Timestamp),
})

export const NodeStatus = Type.Object({
  ready: Type.Boolean(),
  reason: nullable(Type.String({ description: 'The reason why the node is not ready' })),
  version: Type.String(),
  git_sha: Type.String(),
  start_time: Timestamp,
  node_id: Uuid,
  node_version: Type.String({ description: 'The version of Node' }),
  pid: Type.Integer(),
  roles: Type.Array(Type.String()),
  sandbox: nullable(Type.Object({ tier: Type.String(), reason: Type.String() })),
  engines: Type.Array(EngineState),
  oldest_untaken_event_ms: nullable(
    Type.Integer({ description: 'Null on nodes without the roles `worker` and `saga`' }),
  ),
  skipped_facts: Type.Integer(),
})

export const LivingNode = Type.Object({
  node_id: Uuid,
  host: Type.String({ description: 'The name of its machine; empty for a node of an earlier version' }),
  roles: Type.Array(Type.String()),
})

export const Check = Type.Object({
  name: Type.String({ description: 'The checked part, such as `disk`' }),
  state: Type.Union([Type.Literal('ok'), Type.Literal('warning'), Type.Literal('failed')]),
  detail: Type.String(),
  fix: nullable(Type.String({ description: 'How to fix the problem' })),
})
