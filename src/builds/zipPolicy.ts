import type { Entry } from 'yauzl'
import { AppError } from '../errors.ts'

/** Limits on the content of a build. Sizes are in bytes. */
export interface ZipLimits {
  readonly entries: number
  readonly nameBytes: number
  readonly depth: number
  readonly fileBytes: number
  readonly totalBytes: number
  /** Files and directories together, also directories that only a name implies. */
  readonly paths: number
  /** Maximum unpacked bytes for one packed byte, for files larger than `ratioFrom`. */
  readonly ratio: number
  readonly ratioFrom: number
  /** Maximum bytes on the disk for one byte of the archive, for archives that need more than `diskRatioFrom`. */
  readonly diskRatio: number
  readonly diskRatioFrom: number
}

export const ZIP_LIMITS: ZipLimits = {
  entries: 10_000,
  nameBytes: 512,
  depth: 32,
  fileBytes: 100 << 20,
  totalBytes: 500 << 20,
  paths: 20_000,
  ratio: 200,
  ratioFrom: 10 << 20,
  diskRatio: 100,
  diskRatioFrom: 20 << 20,
}

/** File systems refuse longer segments of a name, in bytes. */
const SEGMENT_BYTES = 255

/** A file system stores files and directories in blocks, so many small ones need more than their bytes. */
const BLOCK = 4096

export const refuse = (message: string, cause?: unknown): AppError =>
  new AppError('bad_request', `file: ${message}`, { cause })

const S_IFMT = 0o170000
const S_IFREG = 0o100000
const S_IFDIR = 0o040000
const S_IFLNK = 0o120000
const MADE_ON_UNIX = 3
const LOCAL_HEADER = 30

/**
 * Checks the directory of an archive entry by entry, before anything is unpacked. Throws `bad_request` that
 * names the entry. Sizes that are wrong are found when the entry is unpacked.
 */
export class ZipPolicy {
  readonly #limits: ZipLimits
  /** Every path so far, in the form in which case-insensitive file systems compare them. */
  readonly #kinds = new Map<string, 'file' | 'directory'>()
  readonly #ranges: { readonly start: number; readonly end: number; readonly name: string }[] = []
  readonly #archiveBytes: number
  #total = 0
  #diskBytes = 0
  #entries = 0

  /** `archiveBytes`: the size of the archive, with everything between and around its entries. */
  constructor(limits: ZipLimits, archiveBytes: number) {
    this.#limits = limits
    this.#archiveBytes = archiveBytes
  }

  check(entry: Entry): void {
    const { fileName, uncompressedSize, compressedSize } = entry
    const name = JSON.stringify(fileName.slice(0, 200))
    if (++this.#entries > this.#limits.entries)
      throw refuse(`Expected at most ${this.#limits.entries} entries, got more`)
    this.#checkName(entry, name)
    this.#checkKind(entry, name)
    this.#total += uncompressedSize
    if (uncompressedSize > this.#limits.fileBytes) {
      throw refuse(
        `Expected ${name} to have at most ${this.#limits.fileBytes} bytes, got ${uncompressedSize}`,
      )
    }
    if (this.#total > this.#limits.totalBytes)
      throw refuse(`Expected at most ${this.#limits.totalBytes} bytes in total, exceeded at ${name}`)
    if (uncompressedSize > this.#limits.ratioFrom && uncompressedSize > compressedSize * this.#limits.ratio) {
      throw refuse(
        `Expected ${name} to be compressed at most ${this.#limits.ratio} to 1, got ${compressedSize} for ${uncompressedSize} bytes`,
      )
    }
    this.#diskBytes += Math.ceil(uncompressedSize / BLOCK) * BLOCK
    const start = entry.relativeOffsetOfLocalHeader
    this.#ranges.push({ start, end: start + LOCAL_HEADER + compressedSize, name })
  }

  /** Call this after the last entry. Throws if two entries share bytes, or if the whole archive expands too much. */
  finish(): void {
    const { diskRatio, diskRatioFrom } = this.#limits
    if (this.#diskBytes > diskRatioFrom && this.#diskBytes > this.#archiveBytes * diskRatio) {
      throw refuse(
        `Expected the archive to expand at most ${diskRatio} to 1, got ${this.#archiveBytes} bytes for ${this.#diskBytes} on the disk`,
      )
    }
    this.#ranges.sort((a, b) => a.start - b.start)
    this.#ranges.forEach(({ start, name }, index) => {
      const before = this.#ranges[index - 1]
      if (before && start < before.end)
        throw refuse(`Expected entries that share no bytes, got ${name} and ${before.name}`)
    })
  }

  #checkName({ fileName, fileNameLength }: Entry, name: string): void {
    if (fileNameLength > this.#limits.nameBytes)
      throw refuse(`Expected names of at most ${this.#limits.nameBytes} bytes, got ${name}`)
    if (/^(?:[/\\]|[A-Za-z]:)/.test(fileName))
      throw refuse(`Expected a name relative to the build, got ${name}`)
    if (fileName.includes('\\'))
      throw refuse(`Expected a name with "/" between its segments, not "\\", got ${name}`)
    if (/[\p{Cc}:\ufffd]/u.test(fileName))
      throw refuse(`Expected a name in UTF-8 without control characters and ":", got ${name}`)
    const segments = fileName.replace(/\/$/, '').split('/')
    if (segments.some((segment) => segment === '' || segment === '.' || segment === '..')) {
      throw refuse(`Expected a name without empty, "." and ".." segments, got ${name}`)
    }
    if (segments.some((segment) => Buffer.byteLength(segment) > SEGMENT_BYTES))
      throw refuse(`Expected a name with segments of at most ${SEGMENT_BYTES} bytes, got ${name}`)
    if (segments.length > this.#limits.depth)
      throw refuse(`Expected names of at most ${this.#limits.depth} segments, got ${name}`)
    this.#claim(segments, fileName.endsWith('/'), name)
  }

  /** Throws if the name is not unique, or if a file is also the directory of another. */
  #claim(segments: readonly string[], isDirectory: boolean, name: string): void {
    let path = ''
    segments.forEach((segment, index) => {
      path += `/${segment.normalize('NFC').toLowerCase()}`
      const last = index === segments.length - 1
      const kind = last && !isDirectory ? 'file' : 'directory'
      const known = this.#kinds.get(path)
      if (known && (known === 'file' || kind === 'file'))
        throw refuse(`Expected unique names, got ${name} again`)
      if (known) return
      this.#kinds.set(path, kind)
      if (kind === 'directory') this.#diskBytes += BLOCK
      if (this.#kinds.size > this.#limits.paths)
        throw refuse(`Expected at most ${this.#limits.paths} files and directories, exceeded at ${name}`)
    })
  }

  #checkKind(entry: Entry, name: string): void {
    const {
      externalFileAttributes,
      versionMadeBy,
      compressionMethod,
      generalPurposeBitFlag,
      fileName,
      uncompressedSize,
    } = entry
    if (generalPurposeBitFlag & 1) throw refuse(`Expected ${name} not to be encrypted`)
    if (compressionMethod !== 0 && compressionMethod !== 8) {
      throw refuse(`Expected ${name} to be stored or deflated, got method ${compressionMethod}`)
    }
    const kind = (externalFileAttributes >>> 16) & S_IFMT
    const isDirectory = fileName.endsWith('/')
    const plain = kind === 0 || kind === (isDirectory ? S_IFDIR : S_IFREG)
    if (!plain)
      throw refuse(
        `Expected ${name} to be a plain file or directory, got ${kindName(kind, versionMadeBy >>> 8)}`,
      )
    if (isDirectory && uncompressedSize > 0)
      throw refuse(`Expected the directory ${name} to have no bytes, got ${uncompressedSize}`)
  }
}

const kindName = (kind: number, madeOn: number): string => {
  if (kind === S_IFLNK) return 'a symbolic link'
  if (kind === S_IFREG) return 'a directory by its name and a file by its mode'
  if (kind === S_IFDIR) return 'a file by its name and a directory by its mode'
  return madeOn === MADE_ON_UNIX
    ? `a special file (mode ${kind.toString(8)})`
    : `attributes ${kind.toString(8)}`
}
