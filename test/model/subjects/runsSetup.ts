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
}

export type RunsCommand =
  | { readonly op: 'deploy'; readonly build: string }
  | { readonly op: 'publish'; readonly event: string; readonly claim: boolean }
  | { readonly op: 'dispatch'; readonly event: string; readonly worker: string }
  | { readonly op: 'abandonEvent'; readonly event: string }
  | { readonly op: 'tick'; readonly run: string }
  | { readonly op: 'claim' | 'return'; readonly run: string; readonly worker: string }
  | { readonly op: 'abandonRun' | 'retry' | 'emit'; readonly run: string }
  | { readonly op: 'cancel'; readonly run: string }
  | { readonly op: 'end'; readonly run: string; readonly worker: string; readonly outcome: Ending }
  | { readonly op: 'loseWorker'; readonly worker: string }

export type Ending = 'succeeded' | 'failed' | 'lost'
