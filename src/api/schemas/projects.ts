import Type from 'typebox'
import { MAX_NETWORK } from '../../commands/projects/projectNetwork.ts'
import { Timestamp, Uuid } from './parts.ts'

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
