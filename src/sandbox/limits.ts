import { processSandbox, type Sandbox } from './processSandbox.ts'

/** How far user code may go, and when a child is let go. All times in milliseconds. */
export interface RuntimeOptions {
  /** The Node binary that children run on. */
  readonly node: string
  /** How children are fenced in. */
  readonly sandbox: Sandbox
  /** Runs at a time in one child; more wait, first in first out. */
  readonly maxConcurrency: number
  /** Children at a time; a build that needs one more waits until an idle one has made room. */
  readonly maxChildren: number
  /** Idle children kept warm. */
  readonly maxIdle: number
  /** How long a child may stay idle. */
  readonly idleMs: number
  /** Runs after which a child is replaced. */
  readonly maxRuns: number
  /** How long a child may take to start. */
  readonly startMs: number
  /** How long all modules of a build may take to load when it is inspected. */
  readonly inspectMs: number
  /** Between two questions whether a child with runs still turns its event loop, and how late the answer may be. */
  readonly pingMs: number
  readonly heartbeatMs: number
  /** How long a run may go on after it was asked to stop. */
  readonly graceMs: number
  /** How often deadlines are looked at: one timer for all runs. */
  readonly tickMs: number
  /** Wait before a child is started again after its predecessor crashed; doubles with each crash in a row. */
  readonly backoffMs: number
  readonly maxBackoffMs: number
  /** JavaScript heap of a child. */
  readonly heapMb: number
  /** All writable memory of a child; Node itself reserves about 560 MB of it. */
  readonly dataMb: number
  /** Resident memory of a child; over 80 % of it, it is replaced. */
  readonly rssMb: number
  /** Captured output of one run. */
  readonly logBytes: number
}

export const DEFAULTS: RuntimeOptions = {
  node: process.execPath,
  sandbox: processSandbox,
  maxConcurrency: 100,
  maxChildren: 32,
  maxIdle: 8,
  idleMs: 600_000,
  maxRuns: 100_000,
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
  logBytes: 256 << 10,
}
