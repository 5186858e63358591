import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The file of each living child, named by its process id, with the boot of the machine and the time of its start. */
const folderOf = (dataDir: string): string => join(dataDir, 'children')

/** Ends the children that a service on this data directory left when it died. Returns how many there were. */
export const endLeftoverChildren = (dataDir: string): number => {
  const folder = folderOf(dataDir)
  mkdirSync(folder, { recursive: true })
  const boot = bootId()
  let ended = 0
  for (const name of readdirSync(folder)) {
    const pid = Number(name)
    // svc 0.1.0 recorded no boot: a process of this boot could be another one.
    const [bootOfChild, startedAt] = readFileSync(join(folder, name), 'utf8').split(' ')
    const isOfThisBoot = bootOfChild === boot && Number.isSafeInteger(pid) && pid > 1
    if (isOfThisBoot && startedAt && isLeftover(pid, Number(startedAt))) {
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
      writeFileSync(file, `${bootId() ?? ''} ${statOf(pid)?.startedAt ?? ''}`)
    } catch {
      // the disk is full: the kernel still ends the child with this process
    }
    return () => rmSync(file, { force: true })
  }

/** Ticks of the kernel after the start of a child in which it starts all processes of its group. */
const STARTING_TICKS = 1000

/**
 * Whether the group of a child is there. Its first process may be gone: bubblewrap starts a second one, which waits forever
 * when the first one was killed before it let the second one continue.
 */
const isLeftover = (pid: number, startedAt: number): boolean => {
  const leader = statOf(pid)
  if (leader) return leader.startedAt === startedAt
  return readdirSync('/proc').some((name) => {
    const process = /^\d+$/.test(name) ? statOf(Number(name)) : null
    const after = (process?.startedAt ?? 0) - startedAt
    return process?.group === pid && after >= 0 && after <= STARTING_TICKS
  })
}

/** The id of this boot of the machine. Boots resemble each other: a process of another one may have the same id and start. */
const bootId = (): string | null => {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return null
  }
}

/** The group and the start of a process, in ticks since the boot: a later process may get the same id. */
const statOf = (pid: number): { readonly group: number; readonly startedAt: number } | null => {
  try {
    // The second field, the name, may contain spaces and parentheses.
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)?.split(' ')
    return { group: Number(fields?.[2]), startedAt: Number(fields?.[19]) }
  } catch {
    return null
  }
}

const killGroup = (pid: number): void => {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {}
}
