import { AsyncLocalStorage } from 'node:async_hooks'
import type { HostCall, RunInfo } from './wire.ts'

/** A run under way in this process, as the SDK needs it. The runtime's child provides it. */
export interface ActiveRun {
  readonly info: RunInfo
  /** Aborts when the run is cancelled or out of time. */
  readonly signal: AbortSignal
  /** Asks the service; rejects once the run has ended. */
  request(call: HostCall): Promise<unknown>
}

export const activeRuns = new AsyncLocalStorage<ActiveRun>()

export const activeRun = (caller: string): ActiveRun => {
  const run = activeRuns.getStore()
  if (run) return run
  throw new Error(
    `Expected ${caller}() to be called inside a run, got a call outside any (while the module loads?)`,
  )
}
