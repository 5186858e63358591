import { existsSync, readFileSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { AppError } from '../../errors.ts'
import { type Check, failed, ok, warning } from './check.ts'

/** The version in `package.json`, Dockerfile and documentation. */
const NODE_MAJOR = 26

const GIB = 2 ** 30
/** Free space of the disk, bytes. A full disk makes the service refuse writes. */
const ROOM_WARNING = 2 * GIB
const ROOM_FAILED = GIB / 4
/** Free inodes: each blob and each file of an unpacked build needs one. */
const INODES_WARNING = 10_000

/** Open files: 10,000 connections of clients, their engines, and the pipes of child processes. */
const FILES_WARNING = 12_000
const FILES_FAILED = 1024

export const checkNodeVersion = (version = process.versions.node): Check =>
  Number.parseInt(version, 10) >= NODE_MAJOR
    ? ok('Node', version)
    : failed('Node', version, `run npm ci, which installs Node ${NODE_MAJOR} beside the service`)

/** The folder itself, or the nearest one above it in which it will be created. */
export const existingFolder = (folder: string): string =>
  existsSync(folder) ? folder : existingFolder(dirname(folder))

/** Checks the disk of the data directory, or of the folder in which it will be created. */
export const checkDisk = async (dataDir: string): Promise<readonly Check[]> => {
  const { bavail, bsize, blocks, ffree, files } = await statfs(existingFolder(dataDir))
  return [
    roomOf(dataDir, { free: bavail * bsize, all: blocks * bsize }),
    ...inodesOf({ free: ffree, all: files }),
  ]
}

interface Room {
  readonly free: number
  readonly all: number
}

export const roomOf = (dataDir: string, { free, all }: Room): Check => {
  const detail = `${(free / GIB).toFixed(1)} of ${(all / GIB).toFixed(1)} GiB are free at ${dataDir}`
  const fix = 'free space on this disk, or move SVC_DATA_DIR to a larger one while the service is stopped'
  if (free < ROOM_FAILED) return failed('disk', detail, fix)
  return free < ROOM_WARNING ? warning('disk', detail, fix) : ok('disk', detail)
}

/** Some file systems have no fixed number of inodes and report 0. */
export const inodesOf = ({ free, all }: Room): readonly Check[] =>
  all === 0 || free >= INODES_WARNING
    ? []
    : [
        warning(
          'inodes',
          `${free} of ${all} are free`,
          'remove files from this disk, or use one with more inodes',
        ),
      ]

/** Checks the number of files that this process may open. Node raises its own limit to the hard limit. */
export const checkOpenFiles = (): readonly Check[] => {
  const limit = openFilesLimit()
  return limit === null ? [] : [openFilesOf(limit)]
}

/** A service that may open few files would fail later, in whatever opens one too many. Throws `unavailable`. */
export const demandOpenFiles = (): void => {
  for (const { state, name, detail, fix } of checkOpenFiles())
    if (state === 'failed') throw new AppError('unavailable', `Too few ${name}: ${detail}. To fix it, ${fix}`)
}

export const openFilesOf = (limit: number): Check => {
  const detail = limit === Infinity ? 'no limit' : `at most ${limit}`
  const fix =
    'raise the limit: LimitNOFILE=65536 with systemd, --ulimit nofile=65536 with Docker, else ulimit -n'
  if (limit < FILES_FAILED) return failed('open files', detail, fix)
  return limit < FILES_WARNING ? warning('open files', detail, fix) : ok('open files', detail)
}

/** Null where the system does not show it. */
const openFilesLimit = (): number | null => {
  if (!existsSync('/proc/self/limits')) return null
  const [, soft] = /^Max open files\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
  if (soft === undefined) return null
  return soft === 'unlimited' ? Infinity : Number(soft)
}
