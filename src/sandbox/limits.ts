import { MAX_OUTPUT_BYTES } from '../events/outputLimit.ts'
import { processSandbox, type Sandbox } from './processSandbox.ts'

/** Bounds on user code and on the lifetime of a child. Times are in milliseconds. */
export interface SandboxLimits {
  /** Concurrent runs in one child; further runs wait in order of arrival. */
  readonly runsPerChild: number
  /** Children at a time. A build that needs another one waits until an idle child has ended. */
  readonly maxChildren: number
  /** Idle children kept warm. */
  readonly maxIdle: number
  /** How long a child may stay idle. */
  readonly idleMs: number
  /** A child that has started this many runs is replaced. */
  readonly replaceAfterRuns: number
  /** How long a child may take to start. */
  readonly startMs: number
  /** How long the inspection of a build, or the stripping of its types, may take. */
  readonly inspectMs: number
  /** How often a child with runs is pinged. */
  readonly pingMs: number
  /** How long a child may take to answer a ping. */
  readonly heartbeatMs: number
  /** How long a run may continue after it was asked to stop. */
  readonly graceMs: number
  /** How often deadlines are checked: one timer serves all runs. */
  readonly tickMs: number
  /** Wait before a build whose child crashed twice gets another child; doubles with each further crash. */
  readonly backoffMs: number
  readonly maxBackoffMs: number
  /** JavaScript heap of a child. */
  readonly heapMb: number
  /** All writable memory of a child; Node itself reserves about 560 MB of it. */
  readonly dataMb: number
  /** Resident memory of a child. A child that uses over 80 % of it is replaced. */
  readonly rssMb: number
  /** Captured output of one run. */
  readonly outputBytes: number
}

export interface SandboxOptions extends SandboxLimits {
  /** The Node binary that children run on. */
  readonly node: string
  /** How children are isolated. */
  readonly sandbox: Sandbox
}

export const DEFAULT_OPTIONS: SandboxOptions = {
  node: process.execPath,
  sandbox: processSandbox,
  runsPerChild: 100,
  maxChildren: 32,
  maxIdle: 8,
  idleMs: 600_000,
  replaceAfterRuns: 100_000,
  startMs: 10_000,
  inspectMs: 20_000,
  pingMs: 1000,
  heartbeatMs: 5000,
  graceMs: 5000,
  tickMs: 50,
  backoffMs: 100,
  maxBackoffMs: 10_000,
  heapMb: 192,
  dataMb: 1024,
  rssMb: 400,
  outputBytes: MAX_OUTPUT_BYTES,
}
