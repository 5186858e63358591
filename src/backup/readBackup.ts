import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { isMissing } from '../disk/sync.ts'
import { AppError, isAppError, messageOf } from '../errors.ts'
import { contentFile, readManifest, segmentFile } from './backupFolder.ts'
import type { StoredBlob } from './journal.ts'
import { parseBlobs, parseConsumers } from './lists.ts'
import type { Manifest, Segment, Sum } from './manifest.ts'
import { framesIn, type RowFrame } from './rowFrames.ts'
import type { ConsumerPosition } from '../ports/storedLog.ts'

/** A backup that is read. Every byte is compared with the checksums, and an error names the file. */
export interface ReadBackup {
  readonly manifest: Manifest
  /** The rows of a segment. */
  rows(segment: Segment): AsyncGenerator<RowFrame>
  blobs(): Promise<readonly StoredBlob[]>
  content(blob: StoredBlob): AsyncGenerator<Buffer>
  consumers(): Promise<readonly ConsumerPosition[]>
}

/** Throws `bad_request` for a directory that is not a backup, is of a newer version, or has a damaged manifest. */
export const openBackup = (dir: string): ReadBackup => {
  const manifest = readManifest(dir)
  checkChain(dir, manifest)
  const whole = (sum: Sum) => text(checked(dir, contentFile(sum.sha256), sum))
  return {
    manifest,
    rows: (segment) => checkedRows(dir, segment),
    blobs: async () => parseBlobs(await whole(manifest.blobs), contentFile(manifest.blobs.sha256)),
    content: (blob) => checked(dir, contentFile(blob.sha256), blob, ` (blob ${blob.key})`),
    consumers: async () =>
      parseConsumers(await whole(manifest.consumers), contentFile(manifest.consumers.sha256)),
  }
}

/** Reads a file and rejects if it is not as it was written. `about` says in errors what the file contains. */
async function* checked(
  dir: string,
  file: string,
  { bytes, sha256 }: Sum,
  about = '',
): AsyncGenerator<Buffer> {
  const name = `${join(dir, file)}${about}`
  const digest = createHash('sha256')
  let read = 0
  try {
    for await (const chunk of createReadStream(join(dir, file)) as AsyncIterable<Buffer>) {
      read += chunk.length
      if (read > bytes) throw damaged(name, `expected ${bytes} bytes, got more`)
      digest.update(chunk)
      yield chunk
    }
  } catch (error) {
    if (error instanceof AppError) throw error
    throw damaged(name, isMissing(error) ? 'the file is missing' : `it cannot be read (${messageOf(error)})`)
  }
  if (read < bytes) throw damaged(name, `expected ${bytes} bytes, got ${read}`)
  if (digest.digest('hex') !== sha256) throw damaged(name, 'its content does not match its checksum')
}

export async function* checkedRows(dir: string, segment: Segment): AsyncGenerator<RowFrame> {
  const { file, first, last } = segment
  let next = first
  try {
    for await (const row of framesIn(checked(dir, file, segment))) {
      if (row.first !== next) throw new AppError('bad_request', `expected position ${next}, got ${row.first}`)
      next = row.first + row.count
      yield row
    }
    if (next !== last + 1) throw new AppError('bad_request', `expected events up to ${last}, got ${next - 1}`)
  } catch (error) {
    if (!isAppError(error, 'bad_request') || error instanceof DamagedFile) throw error
    throw damaged(join(dir, file), error.message)
  }
}

const checkChain = (dir: string, { segments, position }: Manifest): void => {
  let next = 1
  for (const { first, last, file } of segments) {
    if (file !== segmentFile(first, last))
      throw damaged(dir, `expected the segment ${segmentFile(first, last)}`)
    if (first !== next)
      throw damaged(join(dir, file), `expected a segment from position ${next}, got ${first}`)
    next = last + 1
  }
  if (next !== position + 1)
    throw damaged(dir, `expected segments up to position ${position}, got ${next - 1}`)
}

/** A file of a backup that is not as it was written. */
export class DamagedFile extends AppError {
  constructor(file: string, reason: string) {
    super('bad_request', `${file}: the backup is damaged: ${reason}`)
  }
}

const damaged = (file: string, reason: string): DamagedFile => new DamagedFile(file, reason)
