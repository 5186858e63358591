import { AsyncLocalStorage } from 'node:async_hooks'
import type { HostCall, RunInfo } from './wire.ts'

/** An object whose `stack` is that of a call. */
export interface CallSite {
  readonly stack?: unknown
}

/** A run in progress in this process. The sandbox's child provides it. */
export interface ActiveRun {
  readonly info: RunInfo
  /** Aborts when the run is cancelled or times out. */
  readonly signal: AbortSignal
  /** The place at which user code called a function of the SDK, for requests that are made later. Test doubles lack it. */
  siteOf?(callee: (...args: never[]) => unknown): CallSite
  /** Makes a host call; rejects after the run has ended. The stack of an error begins at `site`, by default at this call. */
  request(call: HostCall, site?: CallSite): Promise<unknown>
}

export const activeRuns = new AsyncLocalStorage<ActiveRun>()

export const activeRun = (caller: string): ActiveRun => {
  const run = activeRuns.getStore()
  if (run) return run
  throw new Error(
    `Expected ${caller}() to be called inside a run, got a call outside any run (perhaps while a module loads)`,
  )
}
