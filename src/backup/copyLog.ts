import { hash } from 'node:crypto'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '../errors.ts'
import { segmentFile } from './backupFolder.ts'
import type { Journal } from './journal.ts'
import type { Segment } from './manifest.ts'
import { createFile, type NewFile } from './newFile.ts'
import { frameOf, type RowFrame } from './rowFrames.ts'
import { continues } from './scavengedRows.ts'
import type { BackupSource, BackupStart } from './source.ts'

/** A segment is complete at this size. */
const SEGMENT_BYTES = 16 << 20
/** A last segment below this size is written again with the rows that follow, so frequent backups stay few files. */
const SMALL_BYTES = 4 << 20

interface Copying {
  readonly dir: string
  readonly source: Pick<BackupSource, 'rows'>
  readonly start: BackupStart
  /** Segments of earlier backups and attempts, in order. */
  readonly known: readonly Segment[]
  readonly journal: Pick<Journal, 'add'>
  readonly onPosition: (position: number) => void
}

/**
 * Copies the log up to the position of the backup into segments, and resolves with all of them.
 * L1: the last row that was copied earlier is read again and must be equal, so a segment is never continued with another log.
 * A row that lost events since then proves this with the rest of its segment.
 * L2: rows follow each other without a gap, from position 1 to the position of the backup.
 */
export const copyLog = async ({
  dir,
  source,
  start,
  known,
  journal,
  onPosition,
}: Copying): Promise<Segment[]> => {
  const last = known.at(-1)
  if (last && last.last > start.position)
    throw anotherLog(dir, `the backup ends at ${last.last}, the log at ${start.position}`)
  const isRenewed = last !== undefined && last.bytes < SMALL_BYTES && last.last < start.position
  const segments = isRenewed ? known.slice(0, -1) : [...known]
  const written = segments.at(-1)?.last ?? 0
  let next = isRenewed ? last.first : (last?.last_row.first ?? 1)
  let isProven = last === undefined
  let open: OpenSegment | null = null
  const close = async () => {
    if (!open) return
    const segment = await open.finish()
    open = null
    segments.push(segment)
    await journal.add({ segment })
  }
  try {
    for await (const row of source.rows(start.backup_id, next - 1)) {
      if (row.first !== next) throw last && !isProven ? anotherLog(dir, `row ${next}`) : gap(next, row.first) // L2
      next = row.first + row.count
      if (row.first === last?.last_row.first) {
        const isEqual = hash('sha256', row.text) === last.last_row.sha256
        if (!isEqual && !(await continues(dir, last, source.rows(start.backup_id, last.first - 1))))
          throw anotherLog(dir, `row ${row.first}`) // L1
        isProven = true
      }
      if (row.first <= written) continue
      open ??= new OpenSegment(await createFile(dir), row.first)
      await open.write(row)
      if (open.bytes >= SEGMENT_BYTES && isProven) await close()
      onPosition(next - 1)
    }
    if (!isProven) throw anotherLog(dir, `row ${last?.last_row.first}`)
    if (next - 1 !== start.position) throw gap(start.position, next)
    await close()
    return segments
  } finally {
    await open?.discard()
  }
}

class OpenSegment {
  readonly #file: NewFile
  readonly #first: number
  #last_row: RowFrame | null = null

  constructor(file: NewFile, first: number) {
    this.#file = file
    this.#first = first
  }

  get bytes(): number {
    return this.#file.bytes
  }

  async write(row: RowFrame): Promise<void> {
    await this.#file.write(frameOf(row))
    this.#last_row = row
  }

  async finish(): Promise<Segment> {
    const row = this.#last_row
    if (!row) throw new AppError('internal_server_error', 'Expected a segment with rows, got none')
    const last = row.first + row.count - 1
    const placed = await this.#file.place(() => segmentFile(this.#first, last))
    return {
      ...placed,
      first: this.#first,
      last,
      last_row: { first: row.first, sha256: hash('sha256', row.text) },
    }
  }

  discard(): Promise<void> {
    return this.#file.discard()
  }
}

/** Joins the segments of the manifest with those that later attempts have stored completely. */
export const chainOf = (dir: string, stored: readonly Segment[], later: readonly Segment[]): Segment[] => {
  const chain = [...stored]
  for (const segment of later) {
    const last = chain.at(-1)
    const follows = segment.first === (last?.last ?? 0) + 1
    const renews = last !== undefined && segment.first === last.first && segment.last > last.last
    if ((!follows && !renews) || !isStored(dir, segment)) continue
    if (renews) chain.pop()
    chain.push(segment)
  }
  const missing = chain.findIndex((segment) => !isStored(dir, segment))
  return missing < 0 ? chain : chain.slice(0, missing) // what follows is copied again
}

const isStored = (dir: string, { file, bytes }: Segment): boolean =>
  statSync(join(dir, file), { throwIfNoEntry: false })?.size === bytes

const anotherLog = (dir: string, difference: string): AppError =>
  new AppError(
    'bad_request',
    `${dir}: the backup is of another log than that of the service (${difference} differs); use another directory`,
  )

const gap = (expected: number, got: number): AppError =>
  new AppError(
    'unavailable',
    `The service sent the log incompletely: expected position ${expected}, got ${got}; repeat the backup`,
  )
