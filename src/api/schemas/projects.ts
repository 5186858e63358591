import Type from 'typebox'
import { MAX_NETWORK } from '../../commands/projects/projectNetwork.ts'
import { nullable, Timestamp, Uuid } from './parts.ts'

/** Projects, their builds and functions. */

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

const stored = {
  build_id: Uuid,
  project_id: Uuid,
  hash: Type.String(),
  size: Type.Integer(),
  storage_path: Type.String(),
  storage_backend: Type.String(),
  created_at: Timestamp,
}

/** A function of a build with its triggers; a field that its metadata does not have is absent. */
const buildFunction = {
  fn: Type.String({ description: 'Function reference `ns/var`' }),
  ns: Type.String(),
  var: Type.String(),
  on_event: Type.Optional(Type.String({ description: 'Type of the events that start it' })),
  schedule: Type.Optional(Type.Object({ cron: Type.String(), timezone: Type.String() })),
  mcp: Type.Optional(
    Type.Object(
      { service: Type.String(), description: Type.String() },
      { description: 'It is a tool for AI agents' },
    ),
  ),
  webhook: Type.Optional(
    Type.Object({
      service: Type.String(),
      path: Type.String(),
      method: Type.String(),
      auth: Type.Union([Type.Literal('none'), Type.Literal('required')]),
    }),
  ),
  retry: Type.Optional(Type.Object({ attempts: Type.Integer(), delay: Type.Integer() })),
  once: Type.Optional(Type.Boolean()),
  timeout: Type.Optional(Type.Integer({ description: 'Milliseconds' })),
}

export const BuildFunction = Type.Object(buildFunction)

export const ProjectFunction = Type.Object({ build_id: Uuid, ...buildFunction })

export const BuildUpload = Type.Object({
  ...stored,
  functions: Type.Array(BuildFunction, { description: 'The functions of the build, by reference' }),
  ignored: Type.Array(Type.String(), {
    description:
      'Files that look like modules and cannot be namespaces, such as `.tsx` and `.cjs`; at most 100, and none if the build existed',
  }),
  warnings: Type.Array(Type.String(), { description: 'Likely mistakes; none if the build existed' }),
})

const build = {
  ...stored,
  build_type: Type.Union([Type.Literal('release'), Type.Literal('live')]),
  deployed: Type.Boolean(),
  active: Type.Boolean(),
  updated_at: Timestamp,
}

const references = (description: string) => Type.Array(Type.String(), { description })

const changes = {
  added: references('Functions that the former build did not have'),
  removed: references('Functions that the build does not have: nothing starts them any more'),
  changed: references('Functions with another trigger or other metadata'),
}

export const BuildChanges = Type.Object({
  against: Type.Union([Uuid, Type.Null()], { description: 'The deployed build; null if there is none' }),
  ...changes,
})

export const DeployedBuild = Type.Object({
  ...build,
  changes: Type.Object(changes, {
    description: 'The difference to the build that was deployed before, as references `ns/var`',
  }),
  warnings: Type.Array(Type.String(), {
    description: 'Likely mistakes, such as a webhook without its secret',
  }),
})

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
  paused: Type.Boolean({ description: 'No tick starts the function, until the schedule is resumed' }),
  paused_at: nullable(Timestamp),
  next_time: nullable(
    Type.String({
      format: 'date-time',
      description: 'The next tick; null while the schedule is paused, and if there is no further tick',
    }),
  ),
  last_run_id: nullable(
    Type.String({
      format: 'uuid',
      description: 'The newest run that a tick or a caller started, or its newest attempt',
    }),
  ),
  last_time: nullable(Type.String({ format: 'date-time', description: 'When that run was due' })),
})

export const RequestedRun = Type.Object({
  run_id: Type.String({ format: 'uuid', description: 'The run is listed once a worker has claimed it' }),
  stream_id: Uuid,
  requested_at: Timestamp,
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
  verify: Type.Optional(
    Type.Object(
      {
        preset: Type.String(),
        context: Type.String({ description: 'Key of the context variable that contains the secret' }),
      },
      { description: 'The provider whose signatures are checked' },
    ),
  ),
  cors: Type.Optional(
    Type.Array(Type.String(), { description: 'Origins whose pages may send requests; `*` is every page' }),
  ),
  ns: Type.String(),
  var: Type.String(),
  url: Type.String({ description: 'Contains the secret token of the endpoint' }),
})
