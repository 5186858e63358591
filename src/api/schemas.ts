import Type, { type Static } from 'typebox'
import { Plan } from '../events/org.ts'
import { DomainStatus } from '../events/customDomain.ts'
import { RunError, RunType } from '../events/run.ts'
import { MAX_NETWORK } from '../commands/projects/projectNetwork.ts'
import { actionsOf, SERVICE_KEY_TYPES } from '../access/permissions.ts'

export { RunType }
export { AuditedFact, AuditedFactOfInstallation, ReplayedFact } from './auditSchemas.ts'

/** The resources of SPEC.md as the API returns them. */

const Uuid = Type.String({ format: 'uuid' })
const Timestamp = Type.String({ format: 'date-time' })
const Token = Type.String({ description: 'The secret token, returned only in this reply' })
const nullable = <S extends Type.TSchema>(schema: S) => Type.Union([schema, Type.Null()])

const actionList = (actions: readonly string[]) => ({
  type: 'array',
  minItems: 1,
  items: { enum: [...actions, '*'] },
})

/** With plain `Type.String()` keys, a record does not check the values of keys that contain a line break. */
const AnyName = Type.String({ pattern: '^[\\s\\S]*$' })

const permissionMap = (types: readonly string[], more: Record<string, unknown> = {}) =>
  Type.Record(AnyName, Type.Array(Type.String()), {
    documented: {
      patternProperties: {
        ...more,
        ...Object.fromEntries(
          types.map((type) => [`^${type}:[\\s\\S]`, actionList(actionsOf.get(type) ?? [])]),
        ),
      },
      additionalProperties: false,
    },
  })

/** A JSON map from `type:path` to actions (SPEC.md, Permission map). */
export const Permissions = permissionMap([...actionsOf.keys()], { '^\\*:\\*$': actionList([]) })
/** The permission types that a service key may have. */
export const ServiceKeyPermissions = permissionMap(SERVICE_KEY_TYPES)

/** Hosts that the functions of a project may reach. */
export const Network = Type.Union([Type.Array(Type.String(), { maxItems: MAX_NETWORK }), Type.Null()], {
  description:
    'Hosts to which functions of the project may connect: names, `*.example.com` for all names below a zone, or ' +
    'addresses, each with an optional `:port`. Null allows every public host, an empty list none.',
})

export const Project = Type.Object({
  project_id: Uuid,
  env_id: Uuid,
  name: Type.String(),
  network: Network,
  active: Type.Boolean(),
  created_at: Timestamp,
  updated_at: Timestamp,
})

export const BuildUpload = Type.Object({
  build_id: Uuid,
  project_id: Uuid,
  hash: Type.String(),
  size: Type.Integer(),
  storage_path: Type.String(),
  storage_backend: Type.String(),
  created_at: Timestamp,
})

const build = {
  ...BuildUpload.properties,
  build_type: Type.Union([Type.Literal('release'), Type.Literal('live')]),
  deployed: Type.Boolean(),
  active: Type.Boolean(),
  updated_at: Timestamp,
}
export const Build = Type.Object(build)
export const BuildOfEnv = Type.Object({ ...build, project_name: Type.String() })

export const ContextVariable = Type.Object({
  key: Type.String(),
  description: Type.String(),
  created_at: Timestamp,
  updated_at: Timestamp,
})

export const RotatedDataKey = Type.Object({
  env_id: Uuid,
  key_id: Type.String({ format: 'uuid', description: 'Id of the key that now encrypts new secrets' }),
  resealed: Type.Integer({ description: 'Number of context variables encrypted again with the new key' }),
})

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
        (['waiting', 'building', 'comparing', 'done', 'failed'] as const).map((state) => Type.Literal(state)),
      ),
      verify: Type.Boolean(),
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
          before: nullable(Type.Unknown()),
          after: nullable(Type.Unknown()),
        }),
        { description: 'The first ten; a document is null where it is missing' },
      ),
      error: nullable(Type.String()),
    }),
  ),
})

/** Replaces a large value of a list. */
const reference = (name: string) =>
  Type.Object(
    {
      size: Type.Integer({ description: 'Bytes of JSON' }),
      href: Type.String({ description: 'Path of the request that returns the value' }),
    },
    {
      description: `Only in lists: \`${name}\` is null, because it has over 64 KiB or the page has over 1 MiB of values`,
    },
  )

export const Event = Type.Object({
  event_id: Uuid,
  env_id: Uuid,
  stream_id: Uuid,
  event_type: Type.String(),
  event_data: Type.Unknown(),
  event_data_ref: Type.Optional(reference('event_data')),
  event_time: Timestamp,
  created_at: Timestamp,
})

export const AbandonedEvent = Type.Object({
  event_id: Uuid,
  env_id: Uuid,
  stream_id: Uuid,
  event_type: Type.String(),
  event_time: Timestamp,
  error: Type.Object({ code: Type.String(), message: Type.String() }),
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

export const RunStatus = Type.Union([
  Type.Literal('running'),
  Type.Literal('succeeded'),
  Type.Literal('failed'),
  Type.Literal('cancelled'),
  Type.Literal('pending_retry'),
])

export const Run = Type.Object({
  run_id: Uuid,
  env_id: Uuid,
  stream_id: Uuid,
  build_id: Uuid,
  run_type: RunType,
  status: RunStatus,
  start_time: Timestamp,
  stop_time: nullable(Timestamp),
  origin_run_id: nullable(Uuid),
  event_id: nullable(Uuid),
  result: Type.Unknown(),
  result_ref: Type.Optional(reference('result')),
  error: Type.Optional(RunError),
  project_id: Uuid,
  project_name: Type.String(),
  fn: nullable(Type.String({ description: 'Function reference `ns/var`; null for evaluated code' })),
  attempt: Type.Integer(),
  retry_at: nullable(Timestamp),
  parent_run_id: nullable(Uuid),
  replay_of: nullable(Uuid),
})
export type Run = Static<typeof Run>

export const RunLogs = Type.Object({
  run_id: Uuid,
  request: nullable(
    Type.Object(
      {
        method: Type.String(),
        url: Type.String(),
        query: Type.Record(Type.String(), Type.Union([Type.String(), Type.Array(Type.String())])),
        headers: Type.Record(Type.String(), Type.String()),
        ip: nullable(Type.String()),
        auth: nullable(Type.String({ description: '`***` if the endpoint requires a credential' })),
        body: Type.Optional(Type.Unknown({ description: 'Omitted if larger than 64 KiB' })),
      },
      {
        description:
          'The request that started a webhook run, with secrets masked as `***`; null for other runs',
      },
    ),
  ),
  lines: Type.Array(
    Type.Object({
      timestamp: Timestamp,
      source: Type.Union([Type.Literal('stdout'), Type.Literal('stderr')]),
      text: Type.String(),
    }),
  ),
})

export const RunStats = Type.Object({
  total_runs: Type.Integer(),
  running: Type.Integer(),
  succeeded: Type.Integer(),
  failed: Type.Integer(),
  cancelled: Type.Integer(),
})

const RunPoint = {
  total_runs: Type.Integer(),
  running: Type.Integer(),
  succeeded: Type.Integer(),
  failed: Type.Integer(),
  cancelled: Type.Integer(),
  pending_retry: Type.Integer(),
  duration_ms: Type.Object(
    {
      count: Type.Integer({ description: 'Runs that have ended' }),
      p50: nullable(Type.Number()),
      p95: nullable(Type.Number()),
      p99: nullable(Type.Number()),
    },
    { description: 'From start to stop, in milliseconds; percentiles are exact to 2.5 percent' },
  ),
}

export const RunSeries = Type.Object({
  interval: Type.Union([Type.Literal('minute'), Type.Literal('hour'), Type.Literal('day')]),
  from: Timestamp,
  to: Timestamp,
  total: Type.Object(RunPoint, { description: 'All points together' }),
  points: Type.Array(Type.Object({ time: Timestamp, ...RunPoint })),
})

export const EventHandler = Type.Object({
  event_handler_id: Uuid,
  build_id: Uuid,
  event_type: Type.String(),
  ns: Type.String(),
  var: Type.String(),
})

export const Schedule = Type.Object({
  schedule_id: Uuid,
  build_id: Uuid,
  cron: Type.String(),
  timezone: Type.String(),
  ns: Type.String(),
  var: Type.String(),
})

export const Webhook = Type.Object({
  webhook_id: Uuid,
  build_id: Uuid,
  service: Type.String(),
  path: Type.String(),
  method: Type.String(),
  name: Type.String(),
  description: Type.String(),
  auth: Type.Union([Type.Literal('none'), Type.Literal('required')]),
  ns: Type.String(),
  var: Type.String(),
  url: Type.String({ description: 'Contains the secret token of the endpoint' }),
})

export const FileUpload = Type.Object({
  file_id: Uuid,
  path: Type.String(),
  size: Type.Integer({ description: 'Size in bytes' }),
  etag: Type.String({ description: 'ETag of the content, including the quotes' }),
  content_type: Type.String(),
  storage_backend: Type.String(),
  created_at: Timestamp,
  updated_at: Timestamp,
})

export const File = Type.Object({
  ...FileUpload.properties,
  created_by_run_id: nullable(Uuid),
  updated_by_run_id: nullable(Uuid),
})
export const Org = Type.Object({
  org_id: Uuid,
  slug: Type.String(),
  name: Type.String(),
  plan: Plan,
  team_members: Type.Integer(),
  created_at: Timestamp,
})

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

export const UploadedPart = Type.Object({
  part_number: Type.Integer(),
  size: Type.Integer({ description: 'Size in bytes' }),
  etag: Type.String({ description: 'ETag of the part, including the quotes' }),
})

export const MultipartUpload = Type.Object({
  upload_id: Uuid,
  path: Type.String(),
  part_size: Type.Integer({ description: 'Recommended size in bytes of every part except the last' }),
  parts_expected: Type.Integer({ description: 'Expected number of parts; 1 without an `expected_size`' }),
  expires_at: Timestamp,
})

export const UploadUnderWay = Type.Object({
  ...MultipartUpload.properties,
  parts: Type.Array(UploadedPart),
})
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

export const Environment = Type.Object({
  env_id: Uuid,
  org_id: Uuid,
  name: Type.String(),
  active: Type.Boolean(),
})

const Percent = Type.Number({ description: 'Used share of the limit. May exceed 100; 0 if unlimited' })
const Limit = Type.Integer({ description: '-1 means unlimited' })

export const OrgUsage = Type.Object({
  org_id: Uuid,
  usage: Type.Object({
    runs_this_period: Type.Integer(),
    file_storage_bytes: Type.Integer(),
    team_members: Type.Integer(),
    call_storage_bytes: Type.Integer(),
    call_count: Type.Integer(),
  }),
  limits: Type.Object({
    runs_per_month: Limit,
    storage_bytes: Limit,
    team_members: Limit,
    call_retention_days: Limit,
    call_storage_bytes: Limit,
  }),
  usage_percent: Type.Object({
    runs: Percent,
    file_storage: Percent,
    call_storage: Percent,
    team_members: Percent,
    has_warning: Type.Boolean({ description: 'True if any percentage exceeds 90' }),
  }),
  plan: Type.Object({ name: Plan, period_start: Timestamp, period_end: Timestamp }),
})

export const Domain = Type.Object({
  domain_id: Uuid,
  env_id: Uuid,
  domain: Type.String(),
  status: DomainStatus,
  validation_cname_name: Type.String({
    description: 'Name of the CNAME record that proves ownership of the domain',
  }),
  validation_cname_value: Type.String({ description: 'Target of that CNAME record' }),
  routing_domain: nullable(
    Type.String({ description: 'Target of the CNAME record that routes the domain to this service' }),
  ),
  created_at: Timestamp,
  expires_at: nullable(
    Type.String({
      format: 'date-time',
      description: 'A domain that is not proved by then is removed; null for a proved domain',
    }),
  ),
  certificate_expires_at: nullable(
    Type.String({
      format: 'date-time',
      description: 'It is renewed before. Null without a certificate of this service',
    }),
  ),
  message: nullable(Type.String({ description: 'What the owner of the domain must do or know now' })),
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

export const Check = Type.Object({
  name: Type.String({ description: 'The checked part, such as `disk`' }),
  state: Type.Union([Type.Literal('ok'), Type.Literal('warning'), Type.Literal('failed')]),
  detail: Type.String(),
  fix: nullable(Type.String({ description: 'How to fix the problem' })),
})
