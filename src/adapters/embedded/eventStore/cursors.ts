import { AppError } from '../../../errors.ts'
import { type Cursor, START } from '../../../events/event.ts'

/** Positions count the events of the log from 1; as cursors they are padded, so they sort as strings. */
export const cursorOf = (position: number): Cursor =>
  position === 0 ? START : String(position).padStart(16, '0')

export const isCursor = (text: string): boolean => /^\d{16}$/.test(text)

export const positionOf = (cursor: Cursor): number => {
  if (cursor === START) return 0
  if (!isCursor(cursor)) throw new AppError('bad_request', `Expected a cursor of this log, got "${cursor}"`)
  return Number(cursor)
}
