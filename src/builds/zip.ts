import { constants } from 'node:fs'
import { mkdir, open, stat, type FileHandle } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { crc32 } from 'node:zlib'
import { type Entry, openPromise, type ZipFile } from 'yauzl'
import { isAppError, messageOf } from '../errors.ts'
import { refuse, ZIP_LIMITS, type ZipLimits, ZipPolicy } from './zipPolicy.ts'

const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

/**
 * Unpacks a zip into `dir`, which must exist and be empty; returns the names of its files. The whole
 * directory is checked before the first byte is unpacked. Rejects with `bad_request` that names the
 * invalid entry; `dir` is then incomplete.
 */
export const unpack = async (
  zipFile: string,
  dir: string,
  limits: ZipLimits = ZIP_LIMITS,
): Promise<string[]> => {
  const archiveBytes = (await stat(zipFile)).size
  const zip = await refusing('Expected a zip archive', () =>
    openPromise(zipFile, { autoClose: false, strictFileNames: true }),
  )
  try {
    const entries = await refusing('Expected a readable zip archive', () =>
      directoryOf(zip, limits, archiveBytes),
    )
    const made = new Set<string>([dir])
    const files: string[] = []
    for (const entry of entries) {
      const path = join(dir, entry.fileName)
      await makeDir(entry.fileName.endsWith('/') ? path : dirname(path), made)
      if (entry.fileName.endsWith('/')) continue
      await refusing(`Expected to unpack ${JSON.stringify(entry.fileName)}`, () =>
        unpackEntry(zip, entry, path),
      )
      files.push(entry.fileName)
    }
    return files
  } finally {
    zip.close()
  }
}

const directoryOf = async (zip: ZipFile, limits: ZipLimits, archiveBytes: number): Promise<Entry[]> => {
  const policy = new ZipPolicy(limits, archiveBytes)
  const entries: Entry[] = []
  for await (const entry of zip.eachEntry()) {
    policy.check(entry)
    entries.push(entry)
  }
  policy.finish()
  return entries
}

const unpackEntry = async (zip: ZipFile, entry: Entry, path: string): Promise<void> => {
  const file = await open(path, CREATE, 0o644)
  try {
    const crc = entry.uncompressedSize === 0 ? 0 : await copy(zip, entry, file)
    if (crc !== entry.crc32) throw new Error(`Expected the checksum ${entry.crc32}, got ${crc}`)
  } finally {
    await file.close()
  }
}

const copy = async (zip: ZipFile, entry: Entry, file: FileHandle): Promise<number> => {
  const stream = await zip.openReadStreamPromise(entry)
  let crc = 0
  let bytes = 0
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > entry.uncompressedSize) throw new Error(`Expected ${entry.uncompressedSize} bytes, got more`)
    crc = crc32(chunk, crc)
    await file.write(chunk)
  }
  if (bytes !== entry.uncompressedSize)
    throw new Error(`Expected ${entry.uncompressedSize} bytes, got ${bytes}`)
  return crc
}

const makeDir = async (path: string, made: Set<string>): Promise<void> => {
  if (made.has(path)) return
  await mkdir(path, { recursive: true })
  made.add(path)
}

/** Converts errors to a refusal of the archive, except errors of the disk. */
const refusing = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
  try {
    return await work()
  } catch (error) {
    if (isAppError(error) || isDiskError(error)) throw error
    throw refuse(`${what}: ${messageOf(error)}`, error)
  }
}

const isDiskError = (error: unknown): boolean => error instanceof Error && 'syscall' in error
