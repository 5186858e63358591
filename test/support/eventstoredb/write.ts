import type { Appended } from './log.ts'
import type { AppendFault } from './misbehaviour.ts'
import type { Node } from './node.ts'
import type { Proposed } from './stored.ts'
import type { Expected } from './verdict.ts'

/** The largest append in bytes. */
export const MAX_APPEND_BYTES = 1024 * 1024

export interface Written {
  /** Undefined if a fault prevented the write. */
  readonly outcome: Appended | undefined
  readonly fault: AppendFault | undefined
}

/** Appends to the log, or applies a fault that a test has set. */
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
