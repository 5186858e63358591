import Type, { type Static } from 'typebox'
import { Retry } from './run.ts'
import { fact, Id, PayloadRef, record, Text, Time } from './scalars.ts'

/** The rules of providers for the signatures of their webhooks. */
export const VERIFY_PRESETS = ['stripe', 'github', 'slack', 'standard-webhooks'] as const
export type VerifyPreset = (typeof VERIFY_PRESETS)[number]

/** A function of a build as the sandbox read it: its reference and the metadata attached by the SDK. */
export const FunctionSpec = record({
  ns: Text,
  var: Text,
  /** Event type this function handles. */
  on_event: Type.Optional(Text),
  retry: Type.Optional(Retry),
  /** True: a run that was lost through no fault of its own does not start again. */
  once: Type.Optional(Type.Boolean()),
  schedule: Type.Optional(record({ cron: Text, timezone: Text })),
  webhook: Type.Optional(
    record({
      service: Text,
      path: Text,
      method: Text,
      name: Text,
      description: Text,
      auth: Type.Union([Type.Literal('none'), Type.Literal('required')]),
      agent: Type.Optional(Text),
      /** The preset by which signatures are checked, and the key of the context variable with its secret. */
      verify: Type.Optional(record({ preset: Text, context: Text })),
      /** Origins whose pages may send requests; `*` is every page. */
      cors: Type.Optional(Type.Immutable(Type.Array(Text))),
    }),
  ),
  /** The function is a tool for clients of MCP. */
  mcp: Type.Optional(
    record({
      service: Text,
      description: Text,
      /** JSON Schema of the arguments; absent: any object. */
      input: Type.Optional(Type.Immutable(Type.Record(Type.String(), Type.Unknown()))),
    }),
  ),
  /** Lower-case names of headers to mask in run logs. */
  secret_headers: Type.Optional(Type.Array(Text)),
  /** Keys of the context variables that the function may read; absent: all of its project. */
  context: Type.Optional(Type.Immutable(Type.Array(Text))),
  /** Milliseconds after which a run of this function is stopped. */
  timeout: Type.Optional(Type.Integer()),
})
export type FunctionSpec = Static<typeof FunctionSpec>

/** The hosts that functions may reach; absent or null: every public host. */
const network = Type.Union([Type.Array(Text), Type.Null()])

export const ProjectCreated = fact('ProjectCreated', {
  project_id: Id,
  name: Text,
  network: Type.Optional(network),
})

/** From now on, functions of the project open connections to these hosts only. */
export const ProjectNetworkChanged = fact('ProjectNetworkChanged', { project_id: Id, network })

export const ProjectRenamed = fact('ProjectRenamed', { project_id: Id, name: Text })

const schedule = { project_id: Id, ns: Text, var: Text }

/** From now on, no tick starts this function of the project. Deployments do not change that. */
export const SchedulePaused = fact('SchedulePaused', schedule)

/** From now on, ticks start the function again. */
export const ScheduleResumed = fact('ScheduleResumed', schedule)

/** The project and its builds were deleted. */
export const ProjectDeleted = fact('ProjectDeleted', { project_id: Id, build_ids: Type.Array(Id) })

/** A long list of functions is in the blobs, under `functions_ref`. */
const functions = {
  functions: Type.Optional(Type.Array(FunctionSpec)),
  functions_ref: Type.Optional(PayloadRef),
}

export const BuildType = Type.Union([Type.Literal('release'), Type.Literal('live')])

/** A build was stored, unpacked and loaded once in the sandbox; `functions` contains its exports. */
export const BuildUploaded = fact('BuildUploaded', {
  build_id: Id,
  project_id: Id,
  hash: Text,
  size: Type.Integer(),
  build_type: BuildType,
  storage_path: Text,
  storage_backend: Text,
  ...functions,
})

/** From now on, the project runs on this build instead of the previous one. */
export const BuildDeployed = fact('BuildDeployed', {
  build_id: Id,
  project_id: Id,
  previous_build_id: Type.Optional(Id),
  hash: Text,
  ...functions,
})

/** A build was deleted. `size`: bytes of its zip, and of its functions in the blobs. Its id is not used again. */
export const BuildDeleted = fact('BuildDeleted', {
  build_id: Id,
  project_id: Id,
  size: Type.Integer(),
  /** `asked`: a caller deleted it. `superseded`: newer live builds replaced it. */
  reason: Type.Union([Type.Literal('asked'), Type.Literal('superseded')]),
})

/** A deployment ended before it took effect, because another project has one of its webhooks. */
export const DeploymentAbandoned = fact('DeploymentAbandoned', { project_id: Id })

/**
 * A project has this webhook address for a deployment. `fence` is the revision of the last deployment before it, in the
 * project's stream. A deployment that was decided on an older fence can no longer take effect.
 */
export const WebhookReserved = fact('WebhookReserved', {
  method: Text,
  service: Text,
  path: Text,
  project_id: Id,
  fence: Type.Integer(),
  reserved_at: Time,
})

/** A rename ended before it took effect, because its node died or was slow and another project needs the name. */
export const RenameAbandoned = fact('RenameAbandoned', { project_id: Id })

/** Another project took over the name that was reserved for the project. An earlier creation can no longer take effect. */
export const CreationAbandoned = fact('CreationAbandoned', { project_id: Id })

/**
 * A name has one holder: the first append to its reservation stream wins. `fence` is the revision of the last change of
 * name before a rename; -1 before a creation. A change that was decided on an older fence can no longer take effect.
 */
export const NameReserved = fact('NameReserved', {
  name: Text,
  holder: Id,
  fence: Type.Optional(Type.Integer()),
  reserved_at: Type.Optional(Time),
  /** The organization that registers a custom domain. */
  org_id: Type.Optional(Id),
})
export const NameReleased = fact('NameReleased', { name: Text, holder: Id })
