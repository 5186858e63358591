import { promisify } from 'node:util'
import { gzip } from 'node:zlib'

/** A file of an archive. */
export interface ArchivedFile {
  /** With slashes, without a leading one. */
  readonly path: string
  readonly content: Uint8Array
  readonly isExecutable: boolean
}

const BLOCK_BYTES = 512
/** Bytes of a path in the header of a tar archive. */
const MAX_PATH_BYTES = 100
/** npm gives this time to all files of a package, so that equal content makes equal archives. */
const MTIME = Date.UTC(1985, 9, 26, 8, 15) / 1000

const compress = promisify(gzip)

/** A gzipped tar archive (POSIX ustar). Equal files give equal bytes, because lock files contain the hash of a package. */
export const archiveOf = async (files: readonly ArchivedFile[]): Promise<Buffer> =>
  compress(Buffer.concat([...files.flatMap(entryOf), Buffer.alloc(2 * BLOCK_BYTES)]), { level: 9 })

const entryOf = (file: ArchivedFile): Uint8Array[] => {
  const padding = (BLOCK_BYTES - (file.content.length % BLOCK_BYTES)) % BLOCK_BYTES
  return [headerOf(file), file.content, Buffer.alloc(padding)]
}

const headerOf = ({ path, content, isExecutable }: ArchivedFile): Buffer => {
  if (Buffer.byteLength(path) > MAX_PATH_BYTES)
    throw new RangeError(`Expected a path of at most ${MAX_PATH_BYTES} bytes, got ${path}`)
  const header = Buffer.alloc(BLOCK_BYTES)
  header.write(path, 0)
  header.write(octal(isExecutable ? 0o755 : 0o644, 7), 100)
  header.write(octal(0, 7), 108) // owner
  header.write(octal(0, 7), 116) // group
  header.write(octal(content.length, 11), 124)
  header.write(octal(MTIME, 11), 136)
  header.fill(' ', 148, 156) // the checksum counts its own field as spaces
  header.write('0', 156) // a regular file
  header.write('ustar\x0000', 257, 'latin1')
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${octal(sum, 6)}\0 `, 148, 'latin1')
  return header
}

const octal = (value: number, digits: number): string => value.toString(8).padStart(digits, '0')
