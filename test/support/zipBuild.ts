import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { ZipFile } from 'yazl'

export interface ZippedBuild {
  readonly bytes: Buffer
  /** Hex SHA-256 of the bytes. */
  readonly hash: string
}

/** A build of the given files, by path. */
export const zipBuild = async (files: Readonly<Record<string, string | Buffer>>): Promise<ZippedBuild> => {
  const zip = new ZipFile()
  for (const [path, content] of Object.entries(files))
    zip.addBuffer(Buffer.from(content), path, { mtime: new Date(0) })
  zip.end()
  const bytes = await buffer(zip.outputStream)
  return { bytes, hash: createHash('sha256').update(bytes).digest('hex') }
}

/** A build of all files below a directory. */
export const zipDir = (dir: string): Promise<ZippedBuild> => zipBuild(filesIn(dir))

const filesIn = (dir: string): Record<string, Buffer> =>
  Object.fromEntries(
    readdirSync(dir, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .sort()
      .map((path) => [path.slice(dir.length + 1), readFileSync(path)]),
  )
