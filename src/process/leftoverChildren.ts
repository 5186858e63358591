import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The file of each living child, named by its process id, with the time of its start. */
const folderOf = (dataDir: string): string => join(dataDir, 'children')

/** Ends the children that a service on this data directory left when it died. Returns how many there were. */
export const endLeftoverChildren = (dataDir: string): number => {
  const folder = folderOf(dataDir)
  mkdirSync(folder, { recursive: true })
  let ended = 0
  for (const name of readdirSync(folder)) {
    const pid = Number(name)
    const startedAt = readFileSync(join(folder, name), 'utf8')
    if (Number.isSafeInteger(pid) && pid > 1 && startedAt !== '' && startTimeOf(pid) === startedAt) {
      killGroup(pid)
      ended++
    }
    rmSync(join(folder, name), { force: true })
  }
  return ended
}

/** Returns a function that records a child, for the next service on this data directory. */
export const childRecorder =
  (dataDir: string): ((pid: number) => () => void) =>
  (pid) => {
    const file = join(folderOf(dataDir), String(pid))
    try {
      writeFileSync(file, startTimeOf(pid) ?? '')
    } catch {
      // the disk is full: the kernel still ends the child with this process
    }
    return () => rmSync(file, { force: true })
  }

/** The start of a process in ticks since the boot: the same process id may belong to a later process. */
const startTimeOf = (pid: number): string | null => {
  try {
    // The second field, the name, may contain spaces and parentheses.
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)?.split(' ')
    return fields?.[19] ?? null
  } catch {
    return null
  }
}

const killGroup = (pid: number): void => {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {}
}
