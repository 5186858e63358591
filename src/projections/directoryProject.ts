import type { FunctionSpec } from '../events/project.ts'
import type { PayloadRef } from '../events/scalars.ts'
import type { Pause } from './pauses.ts'

/** A build whose functions run. */
export interface DirectoryBuild {
  readonly build_id: string
  readonly hash: string
  readonly functions: readonly FunctionSpec[]
  /** The time of the last change, ISO 8601. */
  readonly since: string
  /** Set if the list of functions is damaged or missing. `functions` is then empty, and what it contained is not known. */
  readonly unreadable?: { readonly ref: PayloadRef; readonly reason: string }
}

/** A project as every node knows it. */
export interface DirectoryProject {
  readonly project_id: string
  readonly env_id: string
  readonly name: string
  /** The hosts that functions may reach; null: every public host. */
  readonly network: readonly string[] | null
  /** The last pause of each schedule that was ever paused. */
  readonly pauses: readonly Pause[]
  readonly deployed: DirectoryBuild | null
  /** The newest live (development) build. */
  readonly live: DirectoryBuild | null
}
