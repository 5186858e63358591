import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** The text of a file in /proc; empty if the process has ended or may not be read. */
const textOf = (pid: number, name: string): string => {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'latin1')
  } catch {
    return ''
  }
}

const parentOf = (pid: number): number => Number(/^PPid:\s*(\d+)/m.exec(textOf(pid, 'status'))?.[1] ?? 0)

/** All processes that descend from a process. */
export const descendantsOf = (pid: number): number[] => {
  const parents = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => [Number(name), parentOf(Number(name))] as const)
  const found = new Set([pid])
  for (let size = 0; size < found.size;) {
    size = found.size
    for (const [child, parent] of parents) if (found.has(parent)) found.add(child)
  }
  found.delete(pid)
  return [...found]
}

export const argumentsOf = (pid: number): string => textOf(pid, 'cmdline')

export const environOf = (pid: number): string => textOf(pid, 'environ')

/** The soft limit of a process; null if it has ended. */
export const limitOf = (pid: number, name: string): string | null =>
  new RegExp(`^${name}\\s+(\\S+)`, 'm').exec(textOf(pid, 'limits'))?.[1] ?? null

const memoryMibOf = (pid: number, field: string): number => {
  const [, kib = 0] = new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(textOf(pid, 'status')) ?? []
  return Math.ceil(Number(kib) / 1024)
}

/** The resident memory of a process; 0 if it has ended. */
export const residentMibOf = (pid: number): number => memoryMibOf(pid, 'VmRSS')

/** The most resident memory of a process so far; 0 if it has ended. */
export const mostResidentMibOf = (pid: number): number => memoryMibOf(pid, 'VmHWM')

/** The targets of all open descriptors. */
export const linksOf = (pid: number): string[] => {
  try {
    return readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`))
  } catch {
    return []
  }
}
