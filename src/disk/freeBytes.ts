import { statfsSync } from 'node:fs'

/** The bytes that this process can write on the disk of a folder. */
export const freeBytes = (folder: string): number => {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}
