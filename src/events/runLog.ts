import Type, { type Static } from 'typebox'
import { fact, Id, record, Time } from './scalars.ts'

/** What a run printed, without the newline. */
export const LogLine = record({
  at: Time,
  source: Type.Union([Type.Literal('stdout'), Type.Literal('stderr')]),
  text: Type.String(),
})
export type LogLine = Static<typeof LogLine>

/** Some lines that a run printed, in order; `part` counts from 0. */
export const RunLogged = fact('RunLogged', { run_id: Id, part: Type.Integer(), lines: Type.Array(LogLine) })
