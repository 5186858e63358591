import { readFileSync } from 'node:fs'

/** Clock ticks per second of /proc, on every Linux that Node supports. */
const TICKS = 100

/** The CPU time that a process has used, seconds. */
export const cpuSecondsOf = (pid: number | undefined): number => {
  const fields = readFileSync(`/proc/${pid ?? 'self'}/stat`, 'latin1')
    .replace(/^.*\) /s, '')
    .split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS
}
