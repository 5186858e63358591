import { execFileSync, spawn } from 'node:child_process'
import {
  appendFileSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { once } from 'node:events'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { insideOf, mounting, pidInside } from './bubblewrap.ts'
import { tempDir } from './tempDir.ts'

/** Writes until the disk is full, to its last byte. */
export const fill = (file: string): void => {
  for (const size of [1 << 20, 4096, 1])
    try {
      for (;;) appendFileSync(file, Buffer.alloc(size))
    } catch (error) {
      assert.is((error as NodeJS.ErrnoException).code, 'ENOSPC')
    }
}

/** A disk with room for some bytes, until it is closed. Needs bubblewrap, and `nsenter` of util-linux. */
export interface SmallDisk {
  /** Its path for the programs that `within` starts. */
  readonly path: string
  /** Its path for this process. */
  readonly seen: string
  /** The start of a command that sees the disk. */
  readonly within: readonly string[]
  /** Fills it, except for some bytes. */
  fill(free?: number): void
  free(): void
  /** Lets it have no further file or folder, or as many as before. */
  limitNames(to: 'present' | 'any'): void
  /** The names on the disk, without what fills it. */
  names(folder?: string): readonly string[]
  read(file: string): string
  write(file: string, text: string): void
  remove(file: string): void
  close(): Promise<void>
}

const FILLER = 'filler'

export const openSmallDisk = async (bytes: number): Promise<SmallDisk> => {
  const path = tempDir()
  const [command = '', ...args] = mounting('--perms', '0700', '--size', String(bytes), '--tmpfs', path)
  const holder = spawn(command, [...args, 'sh', '-c', 'echo mounted; cat'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  await once(holder.stdout, 'data')
  const seen = insideOf(holder.pid, path)
  const asUser = process.getuid?.() === 0 ? [] : ['--user', '--preserve-credentials']
  const within = ['nsenter', '--target', String(pidInside(holder.pid)), ...asUser, '--mount', '--']
  const allowed = statfsSync(seen).files
  return {
    path,
    seen,
    within,
    fill: (free = 0) => {
      const filler = join(seen, FILLER)
      fill(filler)
      truncateSync(filler, statSync(filler).size - free)
    },
    free: () => rmSync(join(seen, FILLER)),
    limitNames: (to) => {
      const { files, ffree } = statfsSync(seen)
      const count = to === 'any' ? allowed : files - ffree
      const [enter, ...args] = [...within, 'mount', '-o', `remount,nr_inodes=${count}`, path]
      execFileSync(enter, args)
    },
    names: (folder = '.') =>
      readdirSync(join(seen, folder))
        .filter((name) => name !== FILLER)
        .sort(),
    read: (file) => readFileSync(join(seen, file), 'utf8'),
    write: (file, text) => writeFileSync(join(seen, file), text),
    remove: (file) => rmSync(join(seen, file)),
    close: async () => {
      holder.stdin.end()
      await once(holder, 'close')
    },
  }
}
