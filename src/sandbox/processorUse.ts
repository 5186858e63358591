import { readFileSync } from 'node:fs'

/** The use that a process has made of processors. */
export interface ProcessorUse {
  /** Processor time since its start, milliseconds. */
  readonly usedMs: number
  /** Whether its main thread is running or waits for a processor, and for nothing else. */
  readonly isReady: boolean
}

/** Linux reports processor time in hundredths of a second. */
const UNIT_MS = 10

/** The places of the fields in `/proc/<pid>/stat` after the name, which may contain anything. */
const [STATE, USER_TIME, SYSTEM_TIME] = [0, 11, 12]

/**
 * Opens a measure of a process; it returns null if the system does not report it. A process that started another one, as
 * bubblewrap does, is a wrapper: the inner one is measured.
 */
export const openProcessorUse = (pid: number | undefined): (() => ProcessorUse | null) => {
  let innermost: number | undefined
  return () => {
    if (pid === undefined) return null
    try {
      innermost ??= innermostOf(pid)
      const stat = readFileSync(`/proc/${innermost}/stat`, 'latin1')
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      const usedMs = (Number(fields[USER_TIME]) + Number(fields[SYSTEM_TIME])) * UNIT_MS
      return { usedMs, isReady: fields[STATE] === 'R' }
    } catch {
      return null // another operating system, or the process has ended
    }
  }
}

const innermostOf = (pid: number): number => {
  const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').split(' ')
  return child ? innermostOf(Number(child)) : pid
}
