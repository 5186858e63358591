/**
 * Generated from the OpenAPI document by `npm run client:types`; do not edit. `test/client/apiTypes.test.ts` checks
 * that it is up to date.
 */

/** One page of a list. */
export interface Page<Item> {
  readonly data: readonly Item[]
  readonly pagination: Pagination
}

export interface AuditedFact {
  /** The position in the log; sorts as text */
  readonly position: string
  readonly time: string
  /** On a fact of an imported environment: the time at which the other installation stored it */
  readonly first_time?: string
  /** What happened, such as `ProjectRenamed` */
  readonly type: string
  /** The stream of the event log that contains the fact */
  readonly stream: string
  readonly actor: {
    readonly credential_id: string | null
    /** `api-key`, `session`, `service-key`, `operator`, `client` (without a credential), `run` or `system` */
    readonly credential_type: string | null
    /** The address of the client */
    readonly ip: string | null
  }
  readonly request_id: string | null
  /** The fields of the fact; secrets and content are `[redacted]` */
  readonly data: unknown
}

export interface Build {
  readonly build_id: string
  readonly project_id: string
  readonly hash: string
  readonly size: number
  readonly storage_path: string
  readonly storage_backend: string
  readonly created_at: string
  readonly build_type: 'release' | 'live'
  readonly deployed: boolean
  readonly active: boolean
  readonly updated_at: string
}

export interface BuildChanges {
  /** The deployed build; null if there is none */
  readonly against: string | null
  /** Functions that the former build did not have */
  readonly added: readonly string[]
  /** Functions that the build does not have: nothing starts them any more */
  readonly removed: readonly string[]
  /** Functions with another trigger or other metadata */
  readonly changed: readonly string[]
}

export interface BuildFunction {
  /** Function reference `ns/var` */
  readonly fn: string
  readonly ns: string
  readonly var: string
  /** Type of the events that start it */
  readonly on_event?: string
  readonly schedule?: {
    readonly cron: string
    readonly timezone: string
  }
  /** It is a tool for AI agents */
  readonly mcp?: {
    readonly service: string
    readonly description: string
  }
  readonly webhook?: {
    readonly service: string
    readonly path: string
    readonly method: string
    readonly auth: 'none' | 'required'
  }
  readonly retry?: {
    readonly attempts: number
    readonly delay: number
  }
  readonly once?: boolean
  /** Milliseconds */
  readonly timeout?: number
}

export interface BuildOfEnv {
  readonly build_id: string
  readonly project_id: string
  readonly hash: string
  readonly size: number
  readonly storage_path: string
  readonly storage_backend: string
  readonly created_at: string
  readonly build_type: 'release' | 'live'
  readonly deployed: boolean
  readonly active: boolean
  readonly updated_at: string
  readonly project_name: string
}

export interface BuildUpload {
  readonly build_id: string
  readonly project_id: string
  readonly hash: string
  readonly size: number
  readonly storage_path: string
  readonly storage_backend: string
  readonly created_at: string
  /** The functions of the build, by reference */
  readonly functions: readonly BuildFunction[]
  /** Files that look like modules and cannot be namespaces, such as `.tsx` and `.cjs`; at most 100, and none if the build existed */
  readonly ignored: readonly string[]
  /** Likely mistakes; none if the build existed */
  readonly warnings: readonly string[]
}

export interface CalledFunction {
  readonly run_id: string
  /** The `svc:call` event */
  readonly event_id: string
  readonly stream_id: string
  /** Of the last attempt; null if the run has not ended */
  readonly status: 'succeeded' | 'failed' | 'cancelled' | null
  /** What the function returned; null if it has not */
  readonly result: unknown
  readonly error?: RunError
}

export interface ContextVariable {
  readonly key: string
  readonly description: string
  readonly created_at: string
  readonly updated_at: string
}

export interface DeployedBuild {
  readonly build_id: string
  readonly project_id: string
  readonly hash: string
  readonly size: number
  readonly storage_path: string
  readonly storage_backend: string
  readonly created_at: string
  readonly build_type: 'release' | 'live'
  readonly deployed: boolean
  readonly active: boolean
  readonly updated_at: string
  /** The difference to the build that was deployed before, as references `ns/var` */
  readonly changes: {
    /** Functions that the former build did not have */
    readonly added: readonly string[]
    /** Functions that the build does not have: nothing starts them any more */
    readonly removed: readonly string[]
    /** Functions with another trigger or other metadata */
    readonly changed: readonly string[]
  }
  /** Likely mistakes, such as a webhook without its secret */
  readonly warnings: readonly string[]
}

export interface Domain {
  readonly domain_id: string
  readonly env_id: string
  readonly domain: string
  readonly status: 'pending_validation' | 'validated' | 'provisioning' | 'active' | 'deleting'
  /** Name of the CNAME record that proves ownership of the domain */
  readonly validation_cname_name: string
  /** Target of that CNAME record */
  readonly validation_cname_value: string
  /** Target of the CNAME record that routes the domain to this service */
  readonly routing_domain: string | null
  readonly created_at: string
  /** A domain that is not proved by then is removed; null for a proved domain */
  readonly expires_at: string | null
  /** It is renewed before. Null without a certificate of this service */
  readonly certificate_expires_at: string | null
  /** What the owner of the domain must do or know now */
  readonly message: string | null
}

export interface Environment {
  readonly env_id: string
  readonly org_id: string
  readonly name: string
  readonly active: boolean
  /** An import into it is not complete, and nothing else uses it */
  readonly importing?: boolean
}

export interface ErrorLocation {
  /** Path in the build, or in the project if the build has source maps */
  readonly file: string
  readonly line: number
  readonly column: number
  /** The source line, or 200 characters of it */
  readonly snippet?: string
}

export interface Event {
  readonly event_id: string
  readonly env_id: string
  readonly stream_id: string
  readonly event_type: string
  readonly event_data: unknown
  /** Only in lists: `event_data` is null, because it has over 64 KiB or the page has over 1 MiB of values */
  readonly event_data_ref?: {
    /** Bytes of JSON */
    readonly size: number
    /** Path of the request that returns the value */
    readonly href: string
  }
  readonly event_time: string
  readonly created_at: string
  /** The run whose code sent the event */
  readonly sent_by_run_id: string | null
}

export interface EventHandler {
  readonly event_handler_id: string
  readonly build_id: string
  readonly event_type: string
  readonly ns: string
  readonly var: string
}

export interface File {
  readonly file_id: string
  readonly path: string
  /** Size in bytes */
  readonly size: number
  /** ETag of the content, including the quotes */
  readonly etag: string
  readonly content_type: string
  readonly storage_backend: string
  readonly created_at: string
  readonly updated_at: string
  readonly created_by_run_id: string | null
  readonly updated_by_run_id: string | null
}

export interface FileUpload {
  readonly file_id: string
  readonly path: string
  /** Size in bytes */
  readonly size: number
  /** ETag of the content, including the quotes */
  readonly etag: string
  readonly content_type: string
  readonly storage_backend: string
  readonly created_at: string
  readonly updated_at: string
}

export interface MultipartUpload {
  readonly upload_id: string
  readonly path: string
  /** Recommended size in bytes of every part except the last */
  readonly part_size: number
  /** Expected number of parts; 1 without an `expected_size` */
  readonly parts_expected: number
  readonly expires_at: string
}

/** Hosts to which functions of the project may connect: names, `*.example.com` for all names below a zone, or addresses, each with an optional `:port`. Null allows every public host, an empty list none. */
export type Network = readonly string[] | null

export interface NewServiceKey {
  readonly service_key_id: string
  readonly name: string
  readonly description: string
  readonly permissions: ServiceKeyPermissions
  readonly metadata: unknown
  readonly expires_at: string | null
  readonly revoked_at: string | null
  readonly last_used_at: string | null
  readonly created_at: string
  /** The secret token, returned only in this reply */
  readonly token: string
}

export interface NewSession {
  readonly session_id: string
  readonly permissions: Permissions
  readonly metadata: unknown
  readonly expires_at: string
  readonly created_at: string
  /** The secret token, returned only in this reply */
  readonly token: string
}

export interface OrgUsage {
  readonly org_id: string
  readonly usage: {
    readonly runs_this_period: number
    readonly file_storage_bytes: number
    readonly team_members: number
    readonly call_storage_bytes: number
    readonly call_count: number
  }
  readonly limits: {
    /** -1 means unlimited */
    readonly runs_per_month: number
    /** -1 means unlimited */
    readonly storage_bytes: number
    /** -1 means unlimited */
    readonly team_members: number
    /** -1 means unlimited */
    readonly call_retention_days: number
    /** -1 means unlimited */
    readonly call_storage_bytes: number
  }
  readonly usage_percent: {
    /** Used share of the limit. May exceed 100; 0 if unlimited */
    readonly runs: number
    /** Used share of the limit. May exceed 100; 0 if unlimited */
    readonly file_storage: number
    /** Used share of the limit. May exceed 100; 0 if unlimited */
    readonly call_storage: number
    /** Used share of the limit. May exceed 100; 0 if unlimited */
    readonly team_members: number
    /** True if any percentage exceeds 90 */
    readonly has_warning: boolean
  }
  readonly plan: {
    readonly name: 'free' | 'starter' | 'pro' | 'scale' | 'self_host'
    readonly period_start: string
    readonly period_end: string
  }
  /** Live streams that are open on the node that replies */
  readonly live_streams: {
    /** Those of the environment of the credential; null for the operator */
    readonly in_env: number | null
    /** Those of all environments of the organization */
    readonly in_org: number
    /** The most that the plan allows on each node */
    readonly limit: number
  }
}

export type Permissions = { readonly [name: string]: readonly ('execute' | 'read' | 'create' | 'update' | 'delete' | '*')[] }

export interface Project {
  readonly project_id: string
  readonly env_id: string
  readonly name: string
  readonly network: Network
  readonly active: boolean
  readonly created_at: string
  readonly updated_at: string
}

export interface ProjectFunction {
  readonly build_id: string
  /** Function reference `ns/var` */
  readonly fn: string
  readonly ns: string
  readonly var: string
  /** Type of the events that start it */
  readonly on_event?: string
  readonly schedule?: {
    readonly cron: string
    readonly timezone: string
  }
  /** It is a tool for AI agents */
  readonly mcp?: {
    readonly service: string
    readonly description: string
  }
  readonly webhook?: {
    readonly service: string
    readonly path: string
    readonly method: string
    readonly auth: 'none' | 'required'
  }
  readonly retry?: {
    readonly attempts: number
    readonly delay: number
  }
  readonly once?: boolean
  /** Milliseconds */
  readonly timeout?: number
}

export interface PublishedEvent {
  readonly event_id: string
  readonly env_id: string
  readonly stream_id: string
  readonly event_type: string
  readonly event_data: unknown
  /** Only in lists: `event_data` is null, because it has over 64 KiB or the page has over 1 MiB of values */
  readonly event_data_ref?: {
    /** Bytes of JSON */
    readonly size: number
    /** Path of the request that returns the value */
    readonly href: string
  }
  readonly event_time: string
  readonly created_at: string
  /** The functions of the deployed builds that the event starts; absent for events that control runs, and while a node catches up */
  readonly handlers?: number
}

export interface RequestedRun {
  /** The run is listed once a worker has claimed it */
  readonly run_id: string
  readonly stream_id: string
  readonly requested_at: string
}

export interface RevokedCount {
  readonly revoked_count: number
}

export interface Run {
  readonly run_id: string
  readonly env_id: string
  readonly stream_id: string
  readonly build_id: string
  readonly run_type: RunType
  readonly status: RunStatus
  readonly requested_at: string
  /** When its present worker took it: later than `start_time` if an earlier worker had returned it */
  readonly claimed_at: string
  readonly start_time: string
  readonly stop_time: string | null
  readonly origin_run_id: string | null
  readonly event_id: string | null
  readonly result: unknown
  /** Only in lists: `result` is null, because it has over 64 KiB or the page has over 1 MiB of values */
  readonly result_ref?: {
    /** Bytes of JSON */
    readonly size: number
    /** Path of the request that returns the value */
    readonly href: string
  }
  readonly error?: RunError
  readonly project_id: string
  readonly project_name: string
  /** Function reference `ns/var`; null for evaluated code */
  readonly fn: string | null
  readonly attempt: number
  readonly retry_at: string | null
  /** The attempt after this one */
  readonly retried_by: string | null
  readonly parent_run_id: string | null
  readonly replay_of: string | null
}

export interface RunError {
  /** The reason, such as `function_failed`; the `code` of the thrown error is in `fields` */
  readonly code: string
  readonly message: string
  readonly stack?: string
  /** The class of the thrown error */
  readonly name?: string
  readonly location?: ErrorLocation
  /** The own fields of the error, as small JSON; fields that look like secrets are `***` */
  readonly fields?: { readonly [name: string]: unknown }
  readonly cause?: Thrown
  /** The errors of an `AggregateError`, at most ten */
  readonly errors?: readonly Thrown[]
}

export interface RunExplanation {
  readonly run_id: string
  /** Sentences: what started the run, and who requested it */
  readonly why: readonly string[]
  readonly outcome: string
}

export interface RunInput {
  readonly run_id: string
  /** `event`, `args`, `webhook` or `schedule`; null if the input is no longer stored */
  readonly kind: string | null
  /** The event that a handler received */
  readonly event: {
    readonly id: string
    readonly type: string
    readonly timestamp: string
    readonly source: string
  } | null
  /** The data of the event or of the tick, the list of arguments, or the request with secrets masked as `***` and without a body of more than 32 KiB */
  readonly value: unknown
  /** The retention period of the value has ended */
  readonly cleared: boolean
}

export interface RunLogs {
  readonly run_id: string
  /** The request that started a webhook run, with secrets masked as `***`; null for other runs */
  readonly request: {
    readonly method: string
    readonly url: string
    readonly query: { readonly [name: string]: string | readonly string[] }
    readonly headers: { readonly [name: string]: string }
    readonly ip: string | null
    /** `***` if the endpoint requires a credential */
    readonly auth: string | null
    /** Omitted if larger than 32 KiB */
    readonly body?: unknown
  } | null
  readonly lines: readonly {
    readonly timestamp: string
    readonly source: 'stdout' | 'stderr'
    readonly text: string
  }[]
}

export interface RunSeries {
  readonly interval: 'minute' | 'hour' | 'day'
  readonly from: string
  readonly to: string
  /** All points together */
  readonly total: {
    readonly total_runs: number
    readonly running: number
    readonly succeeded: number
    readonly failed: number
    readonly cancelled: number
    readonly pending_retry: number
    /** From start to stop, in milliseconds; percentiles are exact to 2.5 percent */
    readonly duration_ms: {
      /** Runs that have ended */
      readonly count: number
      readonly p50: number | null
      readonly p95: number | null
      readonly p99: number | null
    }
  }
  readonly points: readonly {
    readonly time: string
    readonly total_runs: number
    readonly running: number
    readonly succeeded: number
    readonly failed: number
    readonly cancelled: number
    readonly pending_retry: number
    /** From start to stop, in milliseconds; percentiles are exact to 2.5 percent */
    readonly duration_ms: {
      /** Runs that have ended */
      readonly count: number
      readonly p50: number | null
      readonly p95: number | null
      readonly p99: number | null
    }
  }[]
}

export interface RunStats {
  readonly total_runs: number
  readonly running: number
  readonly succeeded: number
  readonly failed: number
  readonly cancelled: number
}

export type RunStatus = 'running' | 'succeeded' | 'failed' | 'cancelled' | 'pending_retry'

export interface RunTrace {
  readonly run_id: string
  /** The events and runs in the tree */
  readonly nodes: number
  /** Parts of the tree are left out, the deepest first */
  readonly cut: boolean
  readonly root: TraceNode
}

export type RunType = 'call' | 'event' | 'schedule' | 'run' | 'eval' | 'repl'

export interface Schedule {
  readonly schedule_id: string
  readonly build_id: string
  readonly cron: string
  readonly timezone: string
  readonly ns: string
  readonly var: string
  /** No tick starts the function, until the schedule is resumed */
  readonly paused: boolean
  readonly paused_at: string | null
  /** The next tick; null while the schedule is paused, and if there is no further tick */
  readonly next_time: string | null
  /** The newest run that a tick or a caller started, or its newest attempt */
  readonly last_run_id: string | null
  /** When that run was due */
  readonly last_time: string | null
}

export interface ServiceKey {
  readonly service_key_id: string
  readonly name: string
  readonly description: string
  readonly permissions: ServiceKeyPermissions
  readonly metadata: unknown
  readonly expires_at: string | null
  readonly revoked_at: string | null
  readonly last_used_at: string | null
  readonly created_at: string
}

export type ServiceKeyPermissions = { readonly [name: string]: readonly ('execute' | 'read' | 'create' | '*')[] }

export interface Session {
  readonly session_id: string
  readonly permissions: Permissions
  readonly metadata: unknown
  readonly expires_at: string
  readonly created_at: string
}

export interface SignIn {
  /** Null for a key */
  readonly session_id: string | null
  readonly env_id: string
  /** Null without the permission `read` on `env` */
  readonly env_name: string | null
  /** Null without the permission `read` on `env` */
  readonly org_id: string | null
  readonly permissions: Permissions
  readonly expires_at: string | null
}

export interface SignInTicket {
  /** Valid for one sign-in, returned only in this reply */
  readonly ticket: string
  readonly expires_at: string
}

export interface Thrown {
  /** Absent if the value is no error; then `message` shows the value */
  readonly name?: string
  readonly message: string
  /** The `code` of the error, such as `ECONNREFUSED` */
  readonly code?: string | number
  readonly stack?: string
  /** The own fields of the error, as small JSON; fields that look like secrets are `***` */
  readonly fields?: { readonly [name: string]: unknown }
  /** Its own cause, in the same form */
  readonly cause?: unknown
  /** The errors in it, in the same form */
  readonly errors?: readonly unknown[]
}

export interface TraceNode {
  readonly kind: 'event' | 'run'
  readonly event?: {
    readonly event_id: string
    readonly stream_id: string
    readonly event_type: string
    readonly event_time: string
    readonly sent_by_run_id: string | null
  }
  readonly run?: {
    readonly run_id: string
    readonly stream_id: string
    readonly fn: string | null
    readonly project_id: string
    readonly project_name: string
    readonly run_type: RunType
    readonly status: RunStatus
    readonly attempt: number
    readonly retried_by: string | null
    readonly replay_of: string | null
    readonly requested_at: string
    readonly start_time: string
    readonly stop_time: string | null
    readonly error: {
      readonly code: string
      readonly message: string
    } | null
  }
  /** Some of its children are left out */
  readonly cut: boolean
  /** Runs that an event started; runs that a run called, and events that it sent. The oldest first */
  readonly children: readonly unknown[]
}

export interface UploadUnderWay {
  readonly upload_id: string
  readonly path: string
  /** Recommended size in bytes of every part except the last */
  readonly part_size: number
  /** Expected number of parts; 1 without an `expected_size` */
  readonly parts_expected: number
  readonly expires_at: string
  readonly parts: readonly UploadedPart[]
}

export interface UploadedPart {
  readonly part_number: number
  /** Size in bytes */
  readonly size: number
  /** ETag of the part, including the quotes */
  readonly etag: string
}

export interface Webhook {
  readonly webhook_id: string
  readonly build_id: string
  readonly service: string
  readonly path: string
  readonly method: string
  readonly name: string
  readonly description: string
  readonly auth: 'none' | 'required'
  /** The provider whose signatures are checked */
  readonly verify?: {
    readonly preset: string
    /** Key of the context variable that contains the secret */
    readonly context: string
  }
  /** Origins whose pages may send requests; `*` is every page */
  readonly cors?: readonly string[]
  readonly ns: string
  readonly var: string
  /** Contains the secret token of the endpoint */
  readonly url: string
}

export interface Pagination {
  /** Number of matching items on all pages */
  readonly total: number
  readonly limit: number
  readonly offset: number
  readonly has_more: boolean
  /** Only if a search of runs has not looked at all of them: `before` of the request that continues it */
  readonly searched_to?: string
  /** Only in lists of runs, events and files that have more: `before`, for files `after`, of the request for the next page, without `offset` */
  readonly next?: string
}

/** Every operation of an environment: its input, and the data of its reply. */
export interface Operations {
  /** List projects */
  'GET /v1/projects': {
    readonly query?: {
      /** Maximum number of results */
      readonly limit?: number
      /** Number of results to skip */
      readonly offset?: number
      /** The state at this time, or at this position of the log, instead of the present one */
      readonly as_of?: string
    }
    readonly reply: Page<Project>
  }
  /** Create a project */
  'POST /v1/projects': {
    readonly body: {
      /** Unique in the environment; can be used in paths instead of the id */
      readonly name: string
      readonly network?: Network
    }
    readonly reply: Project
  }
  /** Get a project */
  'GET /v1/projects/{project}': {
    readonly path: {
      /** Id or name of the project */
      readonly project: string
    }
    readonly query?: {
      /** The state at this time, or at this position of the log, instead of the present one */
      readonly as_of?: string
    }
    readonly reply: Project
  }
  /** Change the name or the network of a project */
  'PATCH /v1/projects/{project}': {
    readonly path: {
      /** Id or name of the project */
      readonly project: string
    }
    readonly body: {
      /** Unique in the environment; can be used in paths instead of the id */
      readonly name?: string
      readonly network?: Network
    }
    readonly reply: Project
  }
  /** Delete a project and its builds */
  'DELETE /v1/projects/{project}': {
    readonly path: {
      /** Id or name of the project */
      readonly project: string
    }
    readonly reply: undefined
  }
  /** List all builds of the environment */
  'GET /v1/builds': {
    readonly query?: {
      /** Maximum number of results */
      readonly limit?: number
      /** Number of results to skip */
      readonly offset?: number
      /** The state at this time, or at this position of the log, instead of the present one */
      readonly as_of?: string
    }
    readonly reply: Page<BuildOfEnv>
  }
  /** List the builds of a project */
  'GET /v1/projects/{project}/builds': {
    readonly path: {
      /** Id or name of the project */
      readonly project: string
    }
    readonly query?: {
      /** Maximum number of results */
      readonly limit?: number
      /** Number of results to skip */
      readonly offset?: number
      /** Only builds whose zip has this SHA-256 in hex */
      readonly hash?: string
      /** The state at this time, or at this position of the log, instead of the present one */
      readonly as_of?: string
    }
    readonly reply: Page<Build>
  }
  /** Upload a build */
  'POST /v1/projects/{project}/builds': {
    readonly path: {
      /** Id or name of the project */
      readonly project: string
    }
    readonly body: FormData
    readonly reply: BuildUpload
  }
  /** Get the deployed build */
  'GET /v1/projects/{project}/builds/deployed': {
    readonly path: {
      /** Id or name of the project */
      readonly project: string
    }
    readonly query?: {
      /** The state at this time, or at this position of the log, instead of the present one */
      readonly as_of?: string
    }
    readonly reply: Build
  }
  /** Get the live (development) build */
  'GET /v1/projects/{project}/builds/live': {
    readonly path: {
      /** Id or name of the project */
      readonly project: string
    }
    readonly query?: {
      /** The state at this time, or at this position of the log, instead of the present one */
      readonly as_of?: string
    }
    readonly reply: Build
  }
  /** Get a build */
  'GET /v1/projects/{project}/builds/{build_id}': {
    readonly path: {
      /** Id or name of the project */
      readonly project: string
      /** Id of the build */
      readonly build_id: string
    }
    readonly query?: {
      /** The state at this time, or at this position of the log, instead of the present one */
      readonly as_of?: string
    }
    readonly reply: Build
  }
  /** Delete a build */
  'DELETE /v1/projects/{project}/builds/{build_id}': {
    readonly path: {
      /** Id or name of the project */
      readonly project: string
      /** Id of the build */
      readonly build_id: string
    }
    readonly reply: undefined
  }
  /** Download a build */
  'GET /v1/projects/{project}/builds/{build_id}/download': {
    readonly path: {
      /** Id or name of the project */
      readonly project: string
      /** Id of the build */
      readonly build_id: string
    }
    readonly reply: Response
  }
  /** Deploy a build */
  'POST /v1/projects/{project}/builds/{build_id}/deploy': {
    readonly path: {
      /** Id or name of the project */
      readonly project: string
      /** Id of the build */
      readonly build_id: string
    }
    readonly reply: DeployedBuild
  }
  /** Compare a build with the deployed one */
  'GET /v1/projects/{project}/builds/{build_id}/changes': {
    readonly path: {
      /** Id or name of the project */
      readonly project: string
      /** Id of the build */
      readonly build_id: string
    }
    readonly reply: BuildChanges
  }
  /** List context variables */
  'GET /v1/projects/{project}/context': {
    readonly path: {
      /** Id or name of the project */
      readonly project: string
    }
    readonly query?: {
      /** Maximum number of results */
      readonly limit?: number
      /** Number of results to skip */
      readonly offset?: number
      /** The state at this time, or at this position of the log, instead of the present one */
      readonly as_of?: string
    }
    readonly reply: Page<ContextVariable>
  }
  /** Create a context variable */
  'POST /v1/projects/{project}/context': {
    readonly path: {
      /** Id or name of the project */
      readonly project: string
    }
    readonly body: {
      readonly key: string
      /** Never returned; at most 32 KiB */
      readonly value: string
      readonly description?: string
    }
    readonly reply: ContextVariable
  }
  /** Update a context variable */
  'PUT /v1/projects/{project}/context/{key}': {
    readonly path: {
      /** Id or name of the project */
      readonly project: string
      /** Key of the context variable */
      readonly key: string
    }
    readonly body: {
      /** Never returned; at most 32 KiB */
      readonly value: string
      readonly description?: string
    }
    readonly reply: ContextVariable
  }
  /** Delete a context variable */
  'DELETE /v1/projects/{project}/context/{key}': {
    readonly path: {
      /** Id or name of the project */
      readonly project: string
      /** Key of the context variable */
      readonly key: string
    }
    readonly reply: undefined
  }
  /** List the functions of the deployed or live build */
  'GET /v1/projects/{project}/functions': {
    readonly path: {
      /** Id or name of the project */
      readonly project: string
    }
    readonly query?: {
      /** Maximum number of results */
      readonly limit?: number
      /** Number of results to skip */
      readonly offset?: number
      /** `live`: the newest development build, which evaluated code runs beside */
      readonly build?: 'deployed' | 'live'
    }
    readonly reply: Page<ProjectFunction>
  }
  /** List the event handlers of the deployed build */
  'GET /v1/projects/{project}/event-handlers': {
    readonly path: {
      /** Id or name of the project */
      readonly project: string
    }
    readonly query?: {
      /** Maximum number of results */
      readonly limit?: number
      /** Number of results to skip */
      readonly offset?: number
    }
    readonly reply: Page<EventHandler>
  }
  /** List the webhook endpoints of the deployed build */
  'GET /v1/projects/{project}/webhooks': {
    readonly path: {
      /** Id or name of the project */
      readonly project: string
    }
    readonly query?: {
      /** Maximum number of results */
      readonly limit?: number
      /** Number of results to skip */
      readonly offset?: number
    }
    readonly reply: Page<Webhook>
  }
  /** List the schedules of the deployed build */
  'GET /v1/projects/{project}/schedules': {
    readonly path: {
      /** Id or name of the project */
      readonly project: string
    }
    readonly query?: {
      /** Maximum number of results */
      readonly limit?: number
      /** Number of results to skip */
      readonly offset?: number
    }
    readonly reply: Page<Schedule>
  }
  /** Pause a schedule */
  'POST /v1/projects/{project}/schedules/{schedule_id}/pause': {
    readonly path: {
      /** Id or name of the project */
      readonly project: string
      /** Id of the schedule, from the list of schedules */
      readonly schedule_id: string
    }
    readonly reply: Schedule
  }
  /** Resume a paused schedule */
  'POST /v1/projects/{project}/schedules/{schedule_id}/resume': {
    readonly path: {
      /** Id or name of the project */
      readonly project: string
      /** Id of the schedule, from the list of schedules */
      readonly schedule_id: string
    }
    readonly reply: Schedule
  }
  /** Start the function of a schedule now */
  'POST /v1/projects/{project}/schedules/{schedule_id}/run': {
    readonly path: {
      /** Id or name of the project */
      readonly project: string
      /** Id of the schedule, from the list of schedules */
      readonly schedule_id: string
    }
    readonly reply: RequestedRun
  }
  /** Publish an event */
  'POST /v1/events': {
    readonly body: {
      readonly event_type: string
      /** Another name for `event_type` */
      readonly type?: string
      readonly event_data?: unknown
      /** Another name for `event_data` */
      readonly data?: unknown
      /** Continues this stream; without it a new stream is created */
      readonly stream_id?: string
    }
    readonly reply: PublishedEvent
  }
  /** List events */
  'GET /v1/events': {
    readonly query?: {
      /** Maximum number of results */
      readonly limit?: number
      /** Number of results to skip */
      readonly offset?: number
      readonly event_type?: string
      /** Only events that were published before this ISO 8601 time, or before a `next` */
      readonly before?: string
    }
    readonly reply: Page<Event>
  }
  /** Get an event */
  'GET /v1/events/{event_id}': {
    readonly path: {
      /** Id of the event */
      readonly event_id: string
    }
    readonly query?: {
      /** The state at this time, or at this position of the log, instead of the present one */
      readonly as_of?: string
    }
    readonly reply: Event
  }
  /** List the runs that an event started */
  'GET /v1/events/{event_id}/runs': {
    readonly path: {
      /** Id of the event */
      readonly event_id: string
    }
    readonly query?: {
      /** Maximum number of results */
      readonly limit?: number
      /** Number of results to skip */
      readonly offset?: number
    }
    readonly reply: Page<Run>
  }
  /** List runs */
  'GET /v1/runs': {
    readonly query?: {
      /** Maximum number of results */
      readonly limit?: number
      /** Number of results to skip */
      readonly offset?: number
      readonly status?: RunStatus
      readonly type?: RunType
      /** Only runs of this project, by id or present name */
      readonly project?: string
      /** Only runs of this function, as `ns/var` */
      readonly fn?: string
      /** Only runs of this stream */
      readonly stream?: string
      /** Only runs that this event started, with their retries */
      readonly event?: string
      /** Only the attempts of this run: the id of any of them */
      readonly chain?: string
      /** Only runs with this `error.code`, such as `timeout` */
      readonly error_code?: string
      /** `true`: only runs that have ended and are not retried. `false`: only those that are running, wait for a retry, or were retried */
      readonly final?: 'true' | 'false'
      /** Only runs whose function reference or error message contains this text, in any case */
      readonly text?: string
      /** Only runs of this period before now, as an ISO 8601 duration such as P7D */
      readonly time_range?: string
      /** Only runs that started before this ISO 8601 time, or before a `next` or `searched_to` */
      readonly before?: string
      /** The state at this time, or at this position of the log, instead of the present one */
      readonly as_of?: string
    }
    readonly reply: Page<Run>
  }
  /** Count runs by status */
  'GET /v1/runs/stats': {
    readonly query?: {
      /** Returns a series with one point per minute, hour or day in UTC */
      readonly interval?: 'minute' | 'hour' | 'day'
      /** With interval: the first instant of the series; default: an hour, a day or 30 days before to */
      readonly from?: string
      /** With interval: the end of the series, exclusive; default: now */
      readonly to?: string
      /** With interval: only runs of this project, by id or name */
      readonly project?: string
      /** With project: only runs of this function, as `ns/var` */
      readonly fn?: string
      readonly type?: RunType
    }
    readonly reply: RunStats | RunSeries
  }
  /** Get a run */
  'GET /v1/runs/{run_id}': {
    readonly path: {
      /** Id of the run */
      readonly run_id: string
    }
    readonly query?: {
      /** The state at this time, or at this position of the log, instead of the present one */
      readonly as_of?: string
    }
    readonly reply: Run
  }
  /** Get the input of a run */
  'GET /v1/runs/{run_id}/input': {
    readonly path: {
      /** Id of the run */
      readonly run_id: string
    }
    readonly reply: RunInput
  }
  /** Get the events and runs around a run as a tree */
  'GET /v1/runs/{run_id}/trace': {
    readonly path: {
      /** Id of the run */
      readonly run_id: string
    }
    readonly reply: RunTrace
  }
  /** Explain why a run started, and how it ended */
  'GET /v1/runs/{run_id}/why': {
    readonly path: {
      /** Id of the run */
      readonly run_id: string
    }
    readonly reply: RunExplanation
  }
  /** Get the output of a run */
  'GET /v1/runs/{run_id}/logs': {
    readonly path: {
      /** Id of the run */
      readonly run_id: string
    }
    readonly reply: RunLogs
  }
  /** Run a function again with the same input */
  'POST /v1/runs/{run_id}/replay': {
    readonly path: {
      /** Id of the run */
      readonly run_id: string
    }
    readonly reply: PublishedEvent
  }
  /** Cancel a run */
  'POST /v1/runs/{run_id}/cancel': {
    readonly path: {
      /** Id of the run */
      readonly run_id: string
    }
    readonly reply: PublishedEvent
  }
  /** Call a function */
  'POST /v1/functions/{project}/{ref}': {
    readonly path: {
      /** Id or name of the project */
      readonly project: string
      /** Function reference `ns/var`, encoded as `ns%2Fvar` */
      readonly ref: string
    }
    readonly query?: {
      /** Seconds to wait for the result */
      readonly wait?: number
    }
    readonly body: {
      /** Default: none */
      readonly args?: readonly unknown[]
    }
    readonly reply: CalledFunction
  }
  /** Evaluate code with the live or deployed build */
  'POST /v1/projects/{project}/eval': {
    readonly path: {
      /** Id or name of the project */
      readonly project: string
    }
    readonly body: {
      readonly code: string
      readonly repl_id?: string
    }
    readonly reply: Run
  }
  /** Follow a stream */
  'GET /v1/streams/{stream_id}/subscribe': {
    readonly path: {
      /** Id of the stream */
      readonly stream_id: string
    }
    readonly query?: {
      /** Only runs of this project, by id or present name */
      readonly project?: string
      /** `true`: `stream:data` has `emitted_at`, the time at which the service stored the data */
      readonly times?: 'true' | 'false'
      /** `start`, `end`, or the `id` of the last event that the client received */
      readonly from?: string
      /** The token of a session, instead of the header `Authorization`: for `EventSource` in browsers, which cannot send it */
      readonly session?: string
    }
    readonly reply: Response
  }
  /** Publish an event and follow its stream */
  'POST /v1/streams/subscribe-with-event': {
    readonly query?: {
      /** `true`: `stream:data` has `emitted_at`, the time at which the service stored the data */
      readonly times?: 'true' | 'false'
    }
    readonly body: {
      readonly event_type?: string
      /** Another name for `event_type` */
      readonly type?: string
      readonly event_data?: unknown
      /** Another name for `event_data` */
      readonly data?: unknown
      /** Continues this stream; without it a new stream is created */
      readonly stream_id?: string
    }
    readonly reply: Response
  }
  /** Follow all activity of the environment */
  'GET /v1/env/subscribe': {
    readonly query?: {
      /** Name of a consumer, whose position the server stores */
      readonly consumer?: string
      /** `start`, `end`, or the `id` of the last event that the client received */
      readonly from?: string
      /** The token of a session, instead of the header `Authorization`: for `EventSource` in browsers, which cannot send it */
      readonly session?: string
    }
    readonly reply: Response
  }
  /** Begin a multipart upload */
  'POST /v1/files/uploads': {
    readonly body: {
      /** Path of the file: 1 to 1024 bytes, with segments separated by single slashes */
      readonly path: string
      /** Size of the whole file in bytes */
      readonly expected_size?: number
      /** Media type of the file; default `application/octet-stream` */
      readonly content_type?: string
    }
    readonly reply: MultipartUpload
  }
  /** Get a multipart upload and its uploaded parts */
  'GET /v1/files/uploads/{upload_id}': {
    readonly path: {
      /** Id of the upload */
      readonly upload_id: string
    }
    readonly reply: UploadUnderWay
  }
  /** Cancel a multipart upload and delete its parts */
  'DELETE /v1/files/uploads/{upload_id}': {
    readonly path: {
      /** Id of the upload */
      readonly upload_id: string
    }
    readonly reply: undefined
  }
  /** Upload a part */
  'PUT /v1/files/uploads/{upload_id}/{part_number}': {
    readonly path: {
      /** Id of the upload */
      readonly upload_id: string
      /** Number of the part, starting at 1 */
      readonly part_number: number
    }
    readonly body: Blob | ArrayBuffer | Uint8Array<ArrayBuffer> | string
    /** The media type of the body. */
    readonly type: string
    readonly reply: UploadedPart
  }
  /** Complete a multipart upload */
  'POST /v1/files/uploads/{upload_id}/complete': {
    readonly path: {
      /** Id of the upload */
      readonly upload_id: string
    }
    readonly reply: FileUpload
  }
  /** List files by path */
  'GET /v1/files': {
    readonly query?: {
      /** Maximum number of results */
      readonly limit?: number
      /** Number of results to skip */
      readonly offset?: number
      /** Only files whose path begins with this prefix */
      readonly prefix?: string
      /** Only files whose path sorts after this one, such as a `next` */
      readonly after?: string
    }
    readonly reply: Page<File>
  }
  /** Upload a file in one request */
  'PUT /v1/files/upload/{path}': {
    readonly path: {
      /** Path of the file; may contain slashes */
      readonly path: string
    }
    readonly body: Blob | ArrayBuffer | Uint8Array<ArrayBuffer> | string
    /** The media type of the body. */
    readonly type: string
    readonly reply: FileUpload
  }
  /** Download the file at a path */
  'GET /v1/files/download/{path}': {
    readonly path: {
      /** Path of the file; may contain slashes */
      readonly path: string
    }
    readonly reply: Response
  }
  /** Get the metadata of a file */
  'GET /v1/files/{file_id}': {
    readonly path: {
      /** Id of the file */
      readonly file_id: string
    }
    readonly query?: {
      /** The state at this time, or at this position of the log, instead of the present one */
      readonly as_of?: string
    }
    readonly reply: File
  }
  /** Delete a file */
  'DELETE /v1/files/{file_id}': {
    readonly path: {
      /** Id of the file */
      readonly file_id: string
    }
    readonly reply: undefined
  }
  /** Download a file */
  'GET /v1/files/{file_id}/download': {
    readonly path: {
      /** Id of the file */
      readonly file_id: string
    }
    readonly reply: Response
  }
  /** Get the environment of the credential */
  'GET /v1/env': {
    readonly query?: {
      /** The state at this time, or at this position of the log, instead of the present one */
      readonly as_of?: string
    }
    readonly reply: Environment
  }
  /** Get usage and limits of the organization */
  'GET /v1/org/usage': {
    readonly reply: OrgUsage
  }
  /** Create a session */
  'POST /v1/sessions': {
    readonly body: {
      readonly permissions: Permissions
      /** Any JSON */
      readonly metadata?: unknown
      /** Lifetime in seconds */
      readonly expires_in?: number
    }
    readonly reply: NewSession
  }
  /** List the active sessions of the calling API key */
  'GET /v1/sessions': {
    readonly query?: {
      /** Maximum number of results */
      readonly limit?: number
      /** Number of results to skip */
      readonly offset?: number
      /** The state at this time, or at this position of the log, instead of the present one */
      readonly as_of?: string
    }
    readonly reply: Page<Session>
  }
  /** Revoke every session of the calling API key */
  'DELETE /v1/sessions': {
    readonly reply: RevokedCount
  }
  /** Revoke a session of the calling API key */
  'DELETE /v1/sessions/{session_id}': {
    readonly path: {
      /** Id of the session */
      readonly session_id: string
    }
    readonly reply: undefined
  }
  /** Sign in to the dashboard */
  'POST /v1/sign-in': {
    readonly body: {
      /** An API key, or the token of a session */
      readonly token?: string
      /** A ticket, which is valid once */
      readonly ticket?: string
    }
    readonly reply: SignIn
  }
  /** Get the environment and the permissions of the credential */
  'GET /v1/sign-in': {
    readonly reply: SignIn
  }
  /** Sign out of the dashboard */
  'DELETE /v1/sign-in': {
    readonly reply: undefined
  }
  /** Create a ticket that signs a browser in */
  'POST /v1/sign-in/tickets': {
    readonly reply: SignInTicket
  }
  /** Create a service key */
  'POST /v1/service-keys': {
    readonly body: {
      readonly name?: string
      readonly description?: string
      readonly permissions: ServiceKeyPermissions
      /** Any JSON; encrypted at rest, and passed to webhooks that the key calls */
      readonly metadata?: unknown
      /** Lifetime in seconds. If it is null or omitted, the key never expires */
      readonly expires_in?: number | null
    }
    readonly reply: NewServiceKey
  }
  /** List the service keys of the calling API key */
  'GET /v1/service-keys': {
    readonly query?: {
      /** Maximum number of results */
      readonly limit?: number
      /** Number of results to skip */
      readonly offset?: number
      /** The state at this time, or at this position of the log, instead of the present one */
      readonly as_of?: string
    }
    readonly reply: Page<ServiceKey>
  }
  /** Revoke every service key of the calling API key */
  'DELETE /v1/service-keys': {
    readonly reply: RevokedCount
  }
  /** Get a service key of the calling API key */
  'GET /v1/service-keys/{service_key_id}': {
    readonly path: {
      /** Id of the service key */
      readonly service_key_id: string
    }
    readonly query?: {
      /** The state at this time, or at this position of the log, instead of the present one */
      readonly as_of?: string
    }
    readonly reply: ServiceKey
  }
  /** Revoke a service key of the calling API key */
  'DELETE /v1/service-keys/{service_key_id}': {
    readonly path: {
      /** Id of the service key */
      readonly service_key_id: string
    }
    readonly reply: undefined
  }
  /** List the custom domains of the environment */
  'GET /v1/domains': {
    readonly query?: {
      /** Maximum number of results */
      readonly limit?: number
      /** Number of results to skip */
      readonly offset?: number
    }
    readonly reply: Page<Domain>
  }
  /** Register a custom domain */
  'POST /v1/domains': {
    readonly body: {
      /** International names are accepted */
      readonly domain: string
    }
    readonly reply: Domain
  }
  /** Get a custom domain */
  'GET /v1/domains/{domain_id}': {
    readonly path: {
      /** Id of the custom domain */
      readonly domain_id: string
    }
    readonly query?: {
      /** The state at this time, or at this position of the log, instead of the present one */
      readonly as_of?: string
    }
    readonly reply: Domain
  }
  /** Delete a custom domain */
  'DELETE /v1/domains/{domain_id}': {
    readonly path: {
      /** Id of the custom domain */
      readonly domain_id: string
    }
    readonly reply: undefined
  }
  /** Check the DNS record of a custom domain now */
  'POST /v1/domains/{domain_id}/verify': {
    readonly path: {
      /** Id of the custom domain */
      readonly domain_id: string
    }
    readonly reply: {
      readonly domain_id: string
      readonly domain: string
      readonly status: 'validated' | 'pending_validation'
      /** What to do next, such as the DNS record to create */
      readonly message: string
    }
  }
  /** List who changed what in the environment */
  'GET /v1/audit': {
    readonly query?: {
      /** Maximum number of results */
      readonly limit?: number
      /** Number of results to skip */
      readonly offset?: number
      /** Only facts of this actor: the id of a credential or run, `operator`, or the name of a task of the service */
      readonly actor?: string
      /** Only facts that contain this id, path of a file, key of a context variable or domain */
      readonly resource?: string
      /** Only facts of this type */
      readonly type?: 'ApiKeyChanged' | 'ApiKeyCreated' | 'ApiKeyDeleted' | 'BuildDeleted' | 'BuildDeployed' | 'BuildUploaded' | 'CallsExpired' | 'CertificateIssued' | 'ConsumerForgotten' | 'ConsumerNamed' | 'ContextClosed' | 'ContextVariableCreated' | 'ContextVariableDeleted' | 'ContextVariableUpdated' | 'DataKeyCreated' | 'DataKeysDestroyed' | 'DomainActivated' | 'DomainDeleted' | 'DomainDiverted' | 'DomainProved' | 'DomainRegistered' | 'DomainRemoved' | 'DomainReturned' | 'DomainRouted' | 'DomainSuspended' | 'DomainValidated' | 'EnvCreated' | 'EnvDeleted' | 'EnvImported' | 'EnvPurged' | 'EventHandled' | 'EventPublished' | 'FileDeleted' | 'FileStored' | 'ImportAbandoned' | 'ImportBegun' | 'InstallationFounded' | 'LogLossAccepted' | 'MasterKeyReplaced' | 'MasterKeyRetired' | 'OperatorSignedOut' | 'OrgChanged' | 'OrgCreated' | 'OrgDeleted' | 'ProjectCreated' | 'ProjectDeleted' | 'ProjectNetworkChanged' | 'ProjectRenamed' | 'RunCancelled' | 'RunRequested' | 'RunStarted' | 'SchedulePaused' | 'ScheduleResumed' | 'ServiceKeyCreated' | 'ServiceKeysRevoked' | 'SessionCreated' | 'SessionsEnded' | 'UploadAborted' | 'UploadBegun' | 'UploadCompleted'
      /** Only facts stored at this time or later */
      readonly from?: string
      /** Only facts stored before this time */
      readonly to?: string
      /** Only facts after this position, the oldest first; `start` lists all facts from the oldest on */
      readonly after?: string
    }
    readonly reply: Page<AuditedFact>
  }
}
