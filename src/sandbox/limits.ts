import type { Socket } from 'node:net'
import { totalmem } from 'node:os'
import { MAX_OUTPUT_BYTES } from '../events/outputLimit.ts'
import type { LaneRef } from '../ports/runtime.ts'
import type { ChildUsers } from './childUsers.ts'
import { processSandbox, type Sandbox } from './processSandbox.ts'

/** Limits on user code and on the lifetime of a child. Times are in milliseconds. */
export interface SandboxLimits {
  /** Concurrent runs in one child; further runs wait in order of arrival. */
  readonly runsPerChild: number
  /** A lane whose children are full for this long gets one more. */
  readonly growAfterMs: number
  /** The processors that must be idle for it, on average; 0.5: half of one. */
  readonly growIdle: number
  /**
   * Concurrent children of all organizations. A build that needs another child waits until it gets a place. As many more may
   * exist while runs wait for child runs that have no child.
   */
  readonly maxChildren: number
  /** A lane that has waited for a place for this long gets that of a child which has taken runs for as long. */
  readonly shareAfterMs: number
  /** Idle children kept warm. */
  readonly maxIdle: number
  /** A child that is idle for longer is ended. */
  readonly idleMs: number
  /** A child that has started this many runs is replaced. */
  readonly replaceAfterRuns: number
  /** Time limit for the start of a child. */
  readonly startMs: number
  /** Time limit for the inspection of a build or the stripping of its types, in a child that has started. */
  readonly inspectMs: number
  /** Interval between pings of a child with runs. */
  readonly pingMs: number
  /** Time limit for the reply to a ping. */
  readonly heartbeatMs: number
  /** Time limit for a run to end after a request to stop. */
  readonly graceMs: number
  /** Interval between checks of all deadlines by one timer. */
  readonly tickMs: number
  /** Pause before the next child of a build after two crashes; it doubles with each further crash. */
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
  /** The isolation of children. */
  readonly sandbox: Sandbox
  /** Users of their own for children; absent: children run as the user of the service. */
  readonly users?: ChildUsers
  /** Called with the process id of a child that has started; the returned function when it has ended. */
  readonly recordChild?: (pid: number) => () => void
  /** Receives the service's end of fd 4 of each child with runs. Without it, user code has no network. */
  readonly egress?: (build: LaneRef, pipe: Socket) => void
}

const RSS_MB = 400

/** As many children as fit into three quarters of the memory, each at `rssMb`: at least 4, and at most 32. */
export const childrenFor = (memoryBytes: number): number =>
  Math.min(32, Math.max(4, Math.floor((memoryBytes * 0.75) / (RSS_MB << 20))))

export const DEFAULT_OPTIONS: SandboxOptions = {
  node: process.execPath,
  sandbox: processSandbox(),
  runsPerChild: 100,
  growAfterMs: 1000,
  growIdle: 0.5,
  maxChildren: childrenFor(Math.min(totalmem(), process.constrainedMemory() || Infinity)),
  shareAfterMs: 5000,
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
  rssMb: RSS_MB,
  outputBytes: MAX_OUTPUT_BYTES,
}
