import type { EventOf } from '../events/index.ts'
import type { LogLine } from '../events/runLog.ts'
import { type Decider, type Folded, foreign } from './decider.ts'

export interface RunLogCommand {
  readonly type: 'LogLines'
  readonly run_id: string
  readonly writer: string
  readonly part: number
  readonly lines: readonly LogLine[]
}

type RunLogEvent = EventOf<'RunLogged'>

/** The number of parts that each writer has stored. */
type Parts = Readonly<Record<string, number>>

/** The output of one run, in numbered parts: a part is stored once, also if the reply to its append was lost. */
export const runLog: Decider<Parts, RunLogCommand, RunLogEvent> = {
  initial: () => ({}),

  decide: ({ run_id, writer, part, lines }, parts) =>
    part < (parts[writer] ?? 0) ? [] : [{ type: 'RunLogged', run_id, writer, part, lines: [...lines] }],

  evolve: (parts, { event }: Folded<RunLogEvent>) =>
    event.type === 'RunLogged' ? { ...parts, [event.writer ?? '']: event.part + 1 } : foreign(event.type),
}
