import { DatabaseSync } from 'node:sqlite'
import type { StoredRow, StreamGaps } from '../../../ports/storedLog.ts'
import { rows } from '../sqlite.ts'
import { isIntact } from './checksum.ts'
import { type Element, elementsIn, isEntry } from './logRows.ts'
import { type Removed, withoutThem } from './shrunkRow.ts'

/** The place of a fact, or of what is left of one: it was removed, so the facts before it are older than an expired one. */
interface Place extends Removed {
  readonly isEvent: boolean
}

/** The heads of all streams are in a temporary file of SQLite, so only streams with a gap use memory. */
export const openStreamGaps = (): StreamGaps => {
  const db = new DatabaseSync('')
  db.exec('CREATE TABLE heads (stream TEXT PRIMARY KEY, revision INTEGER) WITHOUT ROWID; BEGIN')
  const head = rows<[revision: number]>(db.prepare('SELECT revision FROM heads WHERE stream = ?'))
  const setHead = db.prepare('INSERT OR REPLACE INTO heads VALUES (?, ?)')
  /** By stream: the position of the first fact after its last gap. */
  const gaps = new Map<string, number>()
  return {
    note(row) {
      if (!isIntact(row.first, row.count, row.text)) return // the restored log refuses it
      const heads = new Map<string, number>()
      for (const { stream, revision, position, isEvent } of placesIn(row)) {
        const before = heads.get(stream) ?? head.get(stream)?.[0]
        if (before !== undefined && (!isEvent || revision !== before + 1)) gaps.set(stream, position)
        heads.set(stream, revision)
      }
      for (const [stream, revision] of heads) setHead.run(stream, revision)
    },
    without(row) {
      if (gaps.size === 0) return row
      const gone = placesIn(row).filter(({ stream, position }) => position < (gaps.get(stream) ?? 0))
      return gone.length === 0 ? row : withoutThem(row, elementsIn(row.text), gone)
    },
    close: () => db.close(),
  }
}

/** The facts of a row, and what is left of removed ones. A damaged row of an earlier version, which has no checksum, shows none. */
const placesIn = ({ first, text }: StoredRow): readonly Place[] => {
  const places: Place[] = []
  let position = first
  for (const element of readableIn(text)) {
    if (typeof element === 'number') position += element
    else {
      const [stream, revision] = element
      places.push({ stream, revision, position: position++, isNewest: false, isEvent: isEntry(element) })
    }
  }
  return places
}

const readableIn = (text: string): readonly Element[] => {
  try {
    return elementsIn(text)
  } catch {
    return []
  }
}
