import type { DatabaseSync } from 'node:sqlite'
import { messageOf } from '../../../errors.ts'
import type { StoredLog, StoredRow } from '../../../ports/storedLog.ts'
import { isDamage, rows } from '../sqlite.ts'
import { isIntact } from './checksum.ts'
import { damagedLog } from './damagedLog.ts'

/** The rows of `log.db` up to a position, as they are stored, and the positions of consumers beside them. */
export const storedLogOf = (db: DatabaseSync, position: number): Omit<StoredLog, 'release'> => {
  const firstAt = rows<[first: number]>(
    db.prepare('SELECT first FROM log WHERE first <= ? ORDER BY first DESC LIMIT 1'),
  )
  const rowsFrom = rows<[first: number, count: number, entries: unknown]>(
    db.prepare('SELECT first, count, entries FROM log WHERE first >= ? ORDER BY first'),
  )
  const consumers = rows<[group: string, position: number]>(
    db.prepare('SELECT name, position FROM consumers'),
  ).all()

  const read = (after: number, length: number): StoredRow[] => {
    const found: StoredRow[] = []
    let next = firstAt.get(after + 1)?.[0] ?? after + 1
    let left = length
    for (const [first, count, text] of rowsFrom.iterate(next)) {
      if (first !== next) throw damagedLog(next, first - 1, 'rows are missing')
      if (typeof text !== 'string' || !isIntact(first, count, text))
        throw damagedLog(first, first + count - 1, 'the checksum does not match')
      found.push({ first, count, text })
      next = first + count
      left -= text.length
      if (left <= 0 || next > position) break
    }
    return found
  }

  return {
    position,
    consumers: consumers.map(([group, at]) => ({ group, position: Math.min(at, position) })),
    rowsAfter(after, length) {
      if (after >= position) return []
      try {
        const found = read(after, length)
        if (found.length === 0) throw damagedLog(after + 1, position, 'rows are missing')
        return found
      } catch (error) {
        throw isDamage(error) ? damagedLog(after + 1, position, messageOf(error), error) : error
      }
    },
  }
}
