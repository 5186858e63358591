import type { Appended } from './log.ts'
import type { AppendFault } from './misbehaviour.ts'
import type { Node } from './node.ts'
import type { Proposed } from './stored.ts'
import type { Expected } from './verdict.ts'

/** Bytes of one append, whatever the number of its events. */
export const MAX_APPEND_BYTES = 1024 * 1024

export interface Written {
  /** undefined: it was not written, as a fault has it. */
  readonly outcome: Appended | undefined
  readonly fault: AppendFault | undefined
}

/** Appends to the log, or does to the append what a test has asked for. */
export const write = (
  { log, misbehaviour }: Node,
  stream: string,
  events: readonly Proposed[],
  expected: Expected,
): Written => {
  const fault = misbehaviour.appendFault(stream)
  const lost = fault && (fault.written === false || fault.reply === 'not ready')
  return { fault, outcome: lost ? undefined : log.append(stream, events, expected) }
}
