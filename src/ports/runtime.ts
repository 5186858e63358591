import type { FunctionSpec } from '../events/project.ts'
import type { RunError, RunType, Target } from '../events/run.ts'

/** A build as the runtime needs it: whose it is and which unpacked bytes to run. */
export interface BuildRef {
  readonly env_id: string
  readonly build_id: string
  /** Hex SHA-256 of the zip; the key under which the bytes lie in blobs and cache. */
  readonly hash: string
}

/** What `currentRun()` of the SDK returns inside the function. */
export interface RunInfo {
  readonly run_id: string
  readonly stream_id: string
  readonly run_type: RunType
  readonly attempt: number
  readonly event_id: string | null
  readonly origin_run_id: string | null
  readonly project_id: string
  readonly project_name: string
}

/** What the function is called with (DESIGN.md, A build; SPEC.md, Webhook request and Handler-side event). */
export type Input =
  | { readonly kind: 'args'; readonly args: readonly unknown[] }
  | { readonly kind: 'event'; readonly event: HandlerEvent }
  | { readonly kind: 'webhook'; readonly request: WebhookRequest }

export interface HandlerEvent {
  readonly type: string
  readonly data: unknown
  readonly id: string
  readonly timestamp: string
  readonly source: string
}

/** Keys are SPEC.md's own; the SDK adds camelCase aliases inside the child. */
export interface WebhookRequest {
  readonly method: string
  readonly url: string
  readonly 'original-url'?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | readonly string[]>>
  readonly body?: unknown
  readonly 'body-raw'?: string
  /** Base64 here; a `Uint8Array` by the time the handler sees it. */
  readonly 'body-bytes'?: string
  readonly ip?: string
  readonly auth?: Readonly<Record<string, unknown>>
}

/** A request of user code to the service, made through the SDK while its run is under way. */
export type HostCall =
  | { readonly op: 'emit'; readonly data_type: string; readonly payload: unknown }
  | { readonly op: 'send'; readonly event_type: string; readonly event_data: unknown }
  | { readonly op: 'call'; readonly fn: string; readonly args: readonly unknown[] }
  | { readonly op: 'run'; readonly fn: string; readonly args: readonly unknown[] }
  | { readonly op: 'context'; readonly key: string }
  | {
      readonly op: 'files'
      readonly action: FileAction
      readonly params: Readonly<Record<string, unknown>>
    }

/** Of files: small content travels in one `get` or `put`, large content in `read`s and in the parts of an upload. */
export const FILE_ACTIONS = [
  'get',
  'read',
  'put',
  'begin',
  'part',
  'complete',
  'abort',
  'list',
  'delete',
] as const
export type FileAction = (typeof FILE_ACTIONS)[number]

export interface Invocation {
  readonly build: BuildRef
  readonly run: RunInfo
  readonly target: Target
  readonly input: Input
  readonly timeoutMs: number
  /** Aborts when the run was cancelled: user code gets an AbortSignal, then 5 s, then its child is killed. */
  readonly signal: AbortSignal
  /** Serves what user code asks for through the SDK; a rejection reaches user code as a thrown error. */
  readonly onHostCall: (call: HostCall) => Promise<unknown>
  /** Captured stdout and stderr, already cut to the caps. */
  readonly onLog: (line: { readonly source: 'stdout' | 'stderr'; readonly text: string }) => void
}

/**
 * How an invocation ended. `error.code` is `function_failed` for what user code threw, else one of
 * `timeout`, `cancelled`, `worker_lost` (the child died), `unresponsive`, `load_failed`,
 * `function_not_found`, `result_not_serializable`, `result_too_large`, `protocol_violation`.
 */
export type Outcome =
  | { readonly status: 'succeeded'; readonly result: unknown }
  | { readonly status: 'failed'; readonly error: RunError }

/** What loading a build once in the sandbox told. */
export type Inspection =
  | { readonly ok: true; readonly functions: readonly FunctionSpec[] }
  | { readonly ok: false; readonly message: string }

/** Runs user functions in child processes. Nothing here rejects because of what user code does. */
export interface Runtime {
  invoke(invocation: Invocation): Promise<Outcome>
  /**
   * Loads every module of an unpacked build and reads its functions. `message` names the user's file and
   * line, relative to the build: `orders/handlers.ts:12: Unexpected token`.
   */
  inspect(build: BuildRef): Promise<Inspection>
  /** Starts a child for the build ahead of its first run. */
  prewarm(build: BuildRef): void
  /** Processes alive, for `/status` and tests. */
  readonly children: number
  /** Kills every child; runs still under way end as `worker_lost`. */
  close(): Promise<void>
}
