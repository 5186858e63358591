import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'

/** SQLite file format, 4: a WAL is a header and frames, which are a header and a page. */
const HEADER_BYTES = 32
const FRAME_HEADER_BYTES = 24

/**
 * Damages the first frame of the last commit of a WAL, as a power cut during the commit may leave it. Returns the place of
 * the commit.
 */
export const tearLastCommit = (wal: string): { readonly from: number; readonly to: number } => {
  const bytes = readFileSync(wal)
  const frameBytes = FRAME_HEADER_BYTES + bytes.readUInt32BE(8)
  const salts = bytes.subarray(16, 24)
  const commits: number[] = []
  const count = Math.floor((bytes.length - HEADER_BYTES) / frameBytes)
  for (let frame = 0; frame < count; frame++) {
    const at = HEADER_BYTES + frame * frameBytes
    if (!bytes.subarray(at + 8, at + 16).equals(salts)) break
    if (bytes.readUInt32BE(at + 4) !== 0) commits.push(frame)
  }
  const [before = -1, last = -1] = commits.slice(-2)
  const file = openSync(wal, 'r+')
  const from = HEADER_BYTES + (before + 1) * frameBytes
  writeSync(file, Buffer.alloc(512, 'torn'), 0, 512, from + FRAME_HEADER_BYTES)
  closeSync(file)
  return { from, to: HEADER_BYTES + (last + 1) * frameBytes }
}
