import type { ChildProcess } from 'node:child_process'

/** Whether a process has exited, or was ended by a signal: it has no exit code then. */
export const hasEnded = ({ exitCode, signalCode }: Pick<ChildProcess, 'exitCode' | 'signalCode'>): boolean =>
  exitCode !== null || signalCode !== null
