import { AsyncLocalStorage } from 'node:async_hooks'
import type { HostCall, RunInfo } from './wire.ts'

/** A run in progress in this process. The sandbox's child provides it. */
export interface ActiveRun {
  readonly info: RunInfo
  /** Aborts when the run is cancelled or times out. */
  readonly signal: AbortSignal
  /** Makes a host call; rejects after the run has ended. */
  request(call: HostCall): Promise<unknown>
}

export const activeRuns = new AsyncLocalStorage<ActiveRun>()

export const activeRun = (caller: string): ActiveRun => {
  const run = activeRuns.getStore()
  if (run) return run
  throw new Error(
    `Expected ${caller}() to be called inside a run, got a call outside any run (perhaps while a module loads)`,
  )
}
