import type { EventOf } from '../events/index.ts'
import type { LogLine } from '../events/runLog.ts'
import { type Decider, type Folded, foreign } from './decider.ts'

export interface RunLogCommand {
  readonly type: 'LogLines'
  readonly run_id: string
  readonly part: number
  readonly lines: readonly LogLine[]
}

type RunLogEvent = EventOf<'RunLogged'>

/** The output of one run, in numbered parts: a part is stored once, also if the reply to its append was lost. */
export const runLog: Decider<{ readonly parts: number }, RunLogCommand, RunLogEvent> = {
  initial: () => ({ parts: 0 }),

  decide: ({ run_id, part, lines }, { parts }) =>
    part < parts ? [] : [{ type: 'RunLogged', run_id, part, lines: [...lines] }],

  evolve: (_, { event }: Folded<RunLogEvent>) =>
    event.type === 'RunLogged' ? { parts: event.part + 1 } : foreign(event.type),
}
