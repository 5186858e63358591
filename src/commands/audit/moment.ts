import { isoOf } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import type { Cursor, Recorded } from '../../events/event.ts'
import type { EventStore } from '../../ports/eventStore.ts'

/** A point of the log: a position, or a time. */
export type Moment = { readonly position: Cursor } | { readonly time: string }

/** The store that issues positions, and the present time in milliseconds since 1970. */
export interface Present {
  readonly store: Pick<EventStore, 'isCursor' | 'head'>
  readonly now: number
}

/** Clocks of the nodes and of the client may differ by as much, milliseconds. */
const CLOCK_SKEW_MS = 5000

const DATE = /^\d{4}-\d{2}-\d{2}$/

/** Times have years of four digits, because they are compared as text. The last day has no next one. */
const LAST_MS = Date.parse('9999-12-31T00:00:00Z')

/** Converts a time to the form of the log. Throws `bad_request` that names the field. */
export const timeOf = (field: string, text: string): string => {
  const ms = instantOf(text)
  if (ms === null)
    throw new AppError(
      'bad_request',
      `${field}: expected an ISO 8601 time such as 2026-05-01T10:00:00Z, got "${text.slice(0, 60)}"`,
    )
  if (ms >= 0 && ms <= LAST_MS) return isoOf(ms)
  throw new AppError(
    'bad_request',
    `${field}: expected a time from 1970 to ${isoOf(LAST_MS)}, got "${text.slice(0, 60)}"`,
  )
}

/** Milliseconds since 1970; null if the text is no time. */
const instantOf = (text: string): number | null => {
  try {
    return Temporal.Instant.from(DATE.test(text) ? `${text}T00:00Z` : text).epochMilliseconds
  } catch {
    return null
  }
}

/** Refuses a time that has not come yet. */
export const pastTimeOf = (field: string, text: string, now: number): string => {
  const time = timeOf(field, text)
  if (Date.parse(time) <= now + CLOCK_SKEW_MS) return time
  throw new AppError('bad_request', `${field}: expected a time in the past, got ${time}; it is ${isoOf(now)}`)
}

/** Resolves with a position of the log. Rejects with `bad_request` for one beyond its end. */
export const positionOf = async (
  field: string,
  text: string,
  { store }: Pick<Present, 'store'>,
): Promise<Cursor> => {
  const head = await store.head()
  if (!store.isCursor(text))
    throw new AppError(
      'bad_request',
      `${field}: expected a position of this log, such as ${head}, got "${text.slice(0, 60)}"`,
    )
  if (text <= head) return text
  throw new AppError(
    'bad_request',
    `${field}: position ${text} is beyond the end of the log, which is at ${head}`,
  )
}

/** Resolves with the moment that a client names by a position or a time. Rejects with `bad_request`. */
export const momentOf = async (field: string, text: string, present: Present): Promise<Moment> => {
  if (present.store.isCursor(text)) return { position: await positionOf(field, text, present) }
  if (instantOf(text) !== null) return { time: pastTimeOf(field, text, present.now) }
  throw new AppError(
    'bad_request',
    `${field}: expected a position of this log, such as ${await present.store.head()}, or an ISO 8601 time such as 2026-05-01T10:00:00Z, got "${text.slice(0, 60)}"`,
  )
}

/** Whether a fact was stored at the moment. */
export const isBy = (moment: Moment, { cursor, at }: Pick<Recorded, 'cursor' | 'at'>): boolean =>
  'position' in moment ? cursor <= moment.position : at <= moment.time

/** Whether neither a fact of the log nor any that follows was stored by the moment: imported facts have earlier times than those before them. */
export const isBeyond = (moment: Moment, { cursor }: Pick<Recorded, 'cursor'>): boolean =>
  'position' in moment && cursor > moment.position
