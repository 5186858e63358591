import { accessSync, constants, existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Limits that the kernel applies to all processes of one child together. */
interface Limits {
  readonly memoryMb: number
  readonly processes: number
  /** The share of the processor relative to the service, which has 100. */
  readonly cpuWeight: number
}

export interface Cgroups {
  /** Moves a child into a group of its own. Returns a function that removes the group when the child has ended. */
  add(pid: number): () => void
}

const ROOT = '/sys/fs/cgroup'

/** The group of the service itself: a group with controllers for its children may contain no process. */
const OWN = 'svc-service'

/**
 * Opens the cgroup v2 of this process for groups of children. Returns null where it is not delegated to this process,
 * for example because it contains other processes or cannot be written.
 */
export const openCgroups = (
  limits: Limits,
  root: string = ROOT,
  membership: string = readIfThere('/proc/self/cgroup'),
): Cgroups | null => {
  const path = /^0::(\/.*)$/m.exec(membership)?.[1]
  if (path === undefined) return null
  const own = join(root, path)
  const controllers = readIfThere(join(own, 'cgroup.controllers')).split(/\s+/)
  if (!controllers.includes('memory') || !controllers.includes('pids') || !isDelegated(own)) return null
  const enabled = ['memory', 'pids', 'cpu'].filter((name) => controllers.includes(name))
  try {
    mkdirSync(join(own, OWN), { recursive: true })
    writeFileSync(join(own, OWN, 'cgroup.procs'), String(process.pid))
    writeFileSync(join(own, 'cgroup.subtree_control'), enabled.map((name) => `+${name}`).join(' '))
  } catch {
    return null
  }
  return { add: (pid) => addTo(own, limits, pid) }
}

/** Whether this process may create groups here, and is alone here. */
const isDelegated = (own: string): boolean => {
  try {
    for (const name of ['', 'cgroup.procs', 'cgroup.subtree_control'])
      accessSync(join(own, name), constants.W_OK)
  } catch {
    return false
  }
  const members = readIfThere(join(own, 'cgroup.procs')).split('\n').filter(Boolean)
  return members.every((pid) => pid === String(process.pid))
}

/** A child without its group is still limited by its resource limits. */
const addTo = (own: string, { memoryMb, processes, cpuWeight }: Limits, pid: number): (() => void) => {
  const group = join(own, `svc-child-${pid}`)
  const settings = {
    'memory.max': String(memoryMb << 20),
    'memory.swap.max': '0',
    'memory.oom.group': '1',
    'pids.max': String(processes),
    'cpu.weight': String(cpuWeight),
    'cgroup.procs': String(pid),
  }
  try {
    mkdirSync(group)
    for (const [name, value] of Object.entries(settings)) {
      if (existsSync(join(group, name))) writeFileSync(join(group, name), value)
    }
  } catch {}
  return () => {
    try {
      rmdirSync(group)
    } catch {}
  }
}

const readIfThere = (path: string): string => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
