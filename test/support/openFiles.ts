import { readdirSync, readlinkSync } from 'node:fs'

/** The files below a folder that a process (default: this one) has open. Linux only. */
export const openFilesIn = (dir: string, pid: number | 'self' = 'self'): string[] =>
  readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      const path = readlinkSync(`/proc/${pid}/fd/${fd}`)
      return path.startsWith(`${dir}/`) ? [path] : []
    } catch {
      return [] // it was closed meanwhile
    }
  })
