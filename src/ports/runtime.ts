import type { FunctionSpec } from '../events/project.ts'
import type { RunError, Target } from '../events/run.ts'
import type { HostCall, Input, RunInfo } from '../sdk/wire.ts'

export type { HostCall, Input, RunInfo, WebhookRequest } from '../sdk/wire.ts'

/** Bytes of the zip of a build. */
export const MAX_ZIP_BYTES = 100 << 20

/**
 * The key of the zip of a build in the blobs. No two builds share a key, so the removal of one build cannot affect
 * another with the same bytes.
 */
export const buildKey = ({ project_id, build_id, hash }: Omit<BuildRef, 'env_id'>): string =>
  `builds/${project_id}/${build_id}-${hash}.zip`

/**
 * The key of a long list of the functions of a build, beside its zip. Two uploads of one build may find different functions, so the
 * key contains the SHA-256 of the list.
 */
export const functionsKey = (zipKey: string, sha256: string): string =>
  zipKey.replace(/\.zip$/, `-${sha256}.json`)

/** The key of such a list in exports and in what was imported or stored before its hash was in the key. */
export const oldFunctionsKey = (zipKey: string): string => zipKey.replace(/\.zip$/, '.json')

/** The key of zips that version 0.1.0 stored. Builds with equal bytes share it. */
export const oldBuildKey = (hash: string): string => `builds/${hash}.zip`

/** A build as the runtime needs it: its environment and project, and the unpacked bytes to run. */
export interface BuildRef {
  readonly env_id: string
  readonly project_id: string
  readonly build_id: string
  /** Hex SHA-256 of the zip: the key of its bytes in blobs and cache. */
  readonly hash: string
}

/** The rights that all runs of one child share: the context variables, or the credential that evaluates code. */
export interface Rights {
  /** Keys of the context variables that the function may read; absent: all of its project. */
  readonly context?: readonly string[] | undefined
  /** The credential that evaluates code, with its permissions. */
  readonly evaluator?: string | undefined
}

/** A build and the rights of a run. Runs with different rights, projects or environments never share a child. */
export interface LaneRef extends BuildRef {
  /** The organization that pays for the child: children are shared fairly between organizations. */
  readonly org_id: string
  readonly rights: Rights
}

export interface Invocation {
  readonly build: LaneRef
  readonly run: RunInfo
  readonly target: Target
  /** Called once, when a child has room: until then the run waits, and its input takes no memory. */
  readonly loadInput: () => Promise<Input>
  /** Called when a child receives the run: from then on, user code may have begun. */
  readonly onStart?: () => void
  readonly timeoutMs: number
  /** The run gets a child of its own, because it was lost with others before: it cannot be lost so again. */
  readonly alone?: boolean
  /** Aborts when the run is cancelled: user code is signalled, and its child is killed 5 s later. */
  readonly signal: AbortSignal
  /**
   * Resolves when the plan of the organization allows the call, null: it does now. The call takes no place meanwhile. A
   * rejection reaches user code as a thrown error.
   */
  readonly untilAllowed?: (call: HostCall) => Promise<void> | null
  /**
   * Serves a request of the SDK; a rejection reaches user code as a thrown error. `onRequested` is called when a child run
   * was requested: the call takes no memory while it awaits that run.
   */
  readonly onHostCall: (call: HostCall, onRequested: () => void) => Promise<unknown>
  /** Captured stdout and stderr, already cut to the caps. `hold` is for a receiver that keeps the line in memory. */
  readonly onLog: (line: { readonly source: 'stdout' | 'stderr'; readonly text: string }, hold: Hold) => void
}

/** Counts bytes as memory of the process that caused them, until the returned function is called. */
export type Hold = (bytes: number) => () => void

/**
 * The ending of an invocation. `error.code` is `function_failed` if user code threw, and `unavailable` if it threw the
 * error of a host call that an outage of the service refused. Otherwise it is `timeout`,
 * `cancelled`, `worker_lost` (the run ended its child), `unresponsive`, `load_failed`, `function_not_found`,
 * `result_not_serializable`, `result_too_large` or `protocol_violation`.
 */
export type Outcome =
  | {
      readonly status: 'succeeded'
      readonly result: unknown
      /** To be called when the result is stored: until then, its bytes count as memory of its process. */
      readonly done?: () => void
    }
  /** `isFinal`: the run could not begin, and no later attempt could. */
  | { readonly status: 'failed'; readonly error: RunError; readonly isFinal?: true }
  /** The run was lost through no fault of its own, and may run again. */
  | { readonly status: 'lost'; readonly error: RunError }

/** A zip that was uploaded. */
export interface Upload {
  /** Path of the zip on the local disk. */
  readonly file: string
  /** Aborts when the client has left. */
  readonly signal?: AbortSignal | undefined
}

/** The result of loading a build once in the sandbox. */
export type Inspection =
  | {
      readonly ok: true
      readonly functions: readonly FunctionSpec[]
      /** The files that look like modules and cannot be namespaces; absent if there are none. */
      readonly ignored?: readonly string[]
      /** Likely mistakes of its author, as texts; absent if there are none. */
      readonly warnings?: readonly string[]
    }
  | { readonly ok: false; readonly message: string }

/** The child processes of a node at this moment, and what has happened to them since its start. */
export interface PoolReading {
  readonly children: number
  /** Children with runs. */
  readonly busy: number
  readonly maxChildren: number
  /** Runs that wait for a child or for room in it. */
  readonly waitingRuns: number
  readonly starts: number
  /** Ends of children that the service had not ended. */
  readonly crashes: number
}

/** Runs user functions in child processes. No method rejects because of user code. */
export interface Runtime {
  /** Rejects if no user code of the run was started: the build or its input is not available, or no child starts. */
  invoke(invocation: Invocation): Promise<Outcome>
  /**
   * Unpacks a zip, loads every module and reads its functions. `message` names the user's file and line, relative to the
   * build: `orders/handlers.ts:12: Unexpected token`. Inspections wait for their turn; rejects with `unavailable` if too
   * many wait. An abort ends the inspection. Nothing of a refused build is kept.
   */
  inspect(build: BuildRef, upload: Upload): Promise<Inspection>
  /** Removes the unpacked files of a build that will not run again. */
  forget(build: Pick<BuildRef, 'hash'>): Promise<void>
  /**
   * Removes the unpacked files of builds that are not needed, and ends their idle processes. `usedAt`: milliseconds since
   * 1970. Resolves with their number, and with that of builds that are left because processes use them.
   */
  forgetUnneeded(
    isNeeded: (build: { readonly hash: string; readonly usedAt: number }) => Promise<boolean>,
  ): Promise<{ removed: number; left: number }>
  /** Starts a child for the build and the rights ahead of the first run. */
  prewarm(build: LaneRef): void
  /** Whether runs of the organization wait here because other runs have the places for children. */
  isFullFor(org_id: string): boolean
  /** Processes alive, for `/status` and tests. */
  readonly children: number
  readonly pool: PoolReading
  /** Kills every child. Runs that a child had received are `lost`, the others reject with `unavailable`. */
  close(): Promise<void>
}
