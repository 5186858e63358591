import type { FunctionSpec } from '../../../src/events/project.ts'

/** The functions of the builds of the scenario's only project. */
export const BUILDS: Readonly<Record<string, readonly FunctionSpec[]>> = {
  many: [
    { ns: 'm', var: 'first', on_event: 'paid', retry: { attempts: 1, delay: 1 } },
    { ns: 'm', var: 'second', on_event: 'paid', once: true },
    { ns: 'm', var: 'called' },
  ],
  few: [{ ns: 'm', var: 'first', on_event: 'paid', retry: { attempts: 1, delay: 1 } }],
}

export const WORKERS = ['w0', 'w1'] as const

export interface EventSetup {
  readonly type: 'paid' | 'idle' | 'svc:call' | 'svc:cancel' | 'svc:replay'
  /** The event whose stream it continues. */
  readonly on?: string
  /** The run that a control event names. */
  readonly run?: string
  /** The run whose code publishes it. */
  readonly by?: string
  /** The event that an operator publishes again. */
  readonly replays?: string
}

/** The events that a scenario may publish, each under its own `Idempotency-Key`. */
export const EVENTS: Readonly<Record<string, EventSetup>> = {
  e0: { type: 'paid' },
  e1: { type: 'paid', on: 'e0' },
  e2: { type: 'idle', on: 'e0' },
  e3: { type: 'svc:call' },
  e4: { type: 'svc:call', on: 'e0' },
  e5: { type: 'svc:cancel', run: 'e0/first' },
  e6: { type: 'svc:cancel', run: 'e3/called' },
  e7: { type: 'svc:cancel', run: 'e0/first!', on: 'e0' },
  e8: { type: 'svc:replay', run: 'e0/first' },
  e9: { type: 'svc:replay', run: 'e0/second' },
  e10: { type: 'svc:replay', run: 'e8/first' },
  e11: { type: 'paid' },
  e12: { type: 'svc:call', on: 'e0', by: 'e0/first' },
  e13: { type: 'paid', on: 'e0', by: 'e0/first!' },
  e14: { type: 'paid', on: 'e0', replays: 'e0' },
  e15: { type: 'paid', on: 'e0', replays: 'e14' },
}

/** Child runs that a run requests, by their parents. */
export const CHILDREN: Readonly<Record<string, string>> = {
  child0: 'e0/first',
  child1: 'e3/called',
  child2: 'child0',
}

/** Runs of schedules, and runs of clients that wait for them. */
export const ALONE = ['tick0', 'tick1', 'web0', 'web1'] as const

export type RunsCommand =
  | { readonly op: 'deploy'; readonly build: string }
  | { readonly op: 'publish'; readonly event: string; readonly claim: boolean }
  | { readonly op: 'dispatch'; readonly event: string; readonly worker: string }
  | { readonly op: 'abandonEvent'; readonly event: string }
  | { readonly op: 'tick'; readonly run: string }
  | { readonly op: 'request'; readonly run: string; readonly claim: boolean }
  | { readonly op: 'child'; readonly run: string }
  | { readonly op: 'output'; readonly run: string; readonly part: number }
  | { readonly op: 'claim' | 'begin' | 'return'; readonly run: string; readonly worker: string }
  | { readonly op: 'abandonRun' | 'retry' | 'emit'; readonly run: string }
  | { readonly op: 'cancel'; readonly run: string }
  | { readonly op: 'end'; readonly run: string; readonly worker: string; readonly outcome: Ending }
  | { readonly op: 'loseWorker'; readonly worker: string }

export type Ending = 'succeeded' | 'failed' | 'lost'

/** The commands with which each scenario begins, so that it has runs to act on. */
export const OPENING: readonly RunsCommand[] = [
  { op: 'publish', event: 'e0', claim: false },
  { op: 'dispatch', event: 'e0', worker: 'w0' },
  { op: 'publish', event: 'e11', claim: true },
  { op: 'publish', event: 'e3', claim: false },
]
