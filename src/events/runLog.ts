import Type, { type Static } from 'typebox'
import { fact, Id, record, Time } from './scalars.ts'

/** One line of output, without the newline. */
export const LogLine = record({
  at: Time,
  source: Type.Union([Type.Literal('stdout'), Type.Literal('stderr')]),
  text: Type.String(),
})
export type LogLine = Static<typeof LogLine>

/**
 * Some lines of output of a run, in order. `part` counts from 0 for each `writer`: a run that was returned has one for each
 * worker that began it. Version 0.1.0 stored none.
 */
export const RunLogged = fact('RunLogged', {
  run_id: Id,
  writer: Type.Optional(Id),
  part: Type.Integer(),
  lines: Type.Array(LogLine),
})
