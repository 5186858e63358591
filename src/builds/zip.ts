import { constants } from 'node:fs'
import { type FileHandle, mkdir, open, readFile, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { crc32, inflateRawSync } from 'node:zlib'
import { type Entry, fromBufferPromise, getFileNameLowLevel, openPromise, type ZipFile } from 'yauzl'
import { eachOf } from '../disk/eachOf.ts'
import { isAppError, messageOf } from '../errors.ts'
import { refuse, ZIP_LIMITS, type ZipLimits, ZipPolicy } from './zipPolicy.ts'

/** Files that are unpacked at the same time: most are small, and each waits for the disk several times. */
const AT_A_TIME = 8

/** A small archive is read at once, and a small file of it decompressed at once: streams would take longer than their content. */
const SMALL_ARCHIVE = 8 << 20
const SMALL_FILE = 64 << 10

/** What packed data that does not get smaller may add. More is no small file, however little it expands to: blocks can be empty. */
const PACKING_BYTES = 1 << 10

/** Names and sizes are checked here, with errors that say what is expected. */
const OPTIONS = { autoClose: false, decodeStrings: false, validateEntrySizes: false }

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
  const bytes = archiveBytes > SMALL_ARCHIVE ? null : await readFile(zipFile)
  const zip = await refusing('Expected a zip archive', () =>
    bytes ? fromBufferPromise(bytes, OPTIONS) : openPromise(zipFile, OPTIONS),
  )
  try {
    const entries = await refusing('Expected a readable zip archive', () =>
      directoryOf(zip, limits, archiveBytes),
    )
    const made = new Set<string>([dir])
    for (const { fileName } of entries) {
      const path = join(dir, fileName)
      await makeDir(fileName.endsWith('/') ? path : dirname(path), made)
    }
    const files = entries.filter(({ fileName }) => !fileName.endsWith('/'))
    await eachOf(files, AT_A_TIME, (entry) =>
      refusing(`Expected to unpack ${JSON.stringify(entry.fileName)}`, () =>
        unpackEntry({ zip, bytes }, entry, join(dir, entry.fileName)),
      ),
    )
    return files.map(({ fileName }) => fileName)
  } finally {
    zip.close()
  }
}

const directoryOf = async (zip: ZipFile, limits: ZipLimits, archiveBytes: number): Promise<Entry[]> => {
  const policy = new ZipPolicy(limits, archiveBytes)
  const entries: Entry[] = []
  for await (const entry of zip.eachEntry()) {
    const { generalPurposeBitFlag, fileNameRaw, extraFields } = entry
    entry.fileName = getFileNameLowLevel(generalPurposeBitFlag, fileNameRaw, extraFields, true)
    policy.check(entry)
    entries.push(entry)
  }
  policy.finish()
  return entries
}

interface Archive {
  readonly zip: ZipFile
  /** All of it, if it is small. */
  readonly bytes: Buffer | null
}

const unpackEntry = async ({ zip, bytes }: Archive, entry: Entry, path: string): Promise<void> => {
  if (bytes && isSmall(entry)) {
    const content = await contentOf(zip, bytes, entry)
    check(entry, content.length, crc32(content))
    return writeFile(path, content, { flag: CREATE, mode: 0o644 })
  }
  const file = await open(path, CREATE, 0o644)
  try {
    await copy(zip, entry, file)
  } finally {
    await file.close()
  }
}

const isSmall = ({ uncompressedSize, compressedSize }: Entry): boolean =>
  uncompressedSize <= SMALL_FILE && compressedSize <= SMALL_FILE + PACKING_BYTES

const check = ({ uncompressedSize, crc32: expected }: Entry, bytes: number, crc: number): void => {
  if (bytes !== uncompressedSize) throw new Error(`Expected ${uncompressedSize} bytes, got ${bytes}`)
  if (crc !== expected) throw new Error(`Expected the checksum ${expected}, got ${crc}`)
}

const contentOf = async (zip: ZipFile, bytes: Buffer, entry: Entry): Promise<Buffer> => {
  const { compressedSize, compressionMethod, uncompressedSize } = entry
  if (uncompressedSize === 0) return Buffer.alloc(0)
  const { fileDataStart } = await zip.readLocalFileHeaderPromise(entry, { minimal: true })
  const packed = bytes.subarray(fileDataStart, fileDataStart + compressedSize)
  if (compressionMethod === STORED) return packed
  try {
    return inflateRawSync(packed, { maxOutputLength: uncompressedSize })
  } catch (error) {
    const isLarger = error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE'
    throw isLarger ? new Error(`Expected ${uncompressedSize} bytes, got more`, { cause: error }) : error
  }
}

const STORED = 0

const copy = async (zip: ZipFile, entry: Entry, file: FileHandle): Promise<void> => {
  if (entry.uncompressedSize === 0) return check(entry, 0, 0)
  const stream = await zip.openReadStreamPromise(entry)
  let crc = 0
  let bytes = 0
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > entry.uncompressedSize) throw new Error(`Expected ${entry.uncompressedSize} bytes, got more`)
    crc = crc32(chunk, crc)
    await file.write(chunk)
  }
  check(entry, bytes, crc)
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
