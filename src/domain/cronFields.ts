import { CronPattern } from 'croner'

/**
 * Years of a search for a day. A year has one of 14 calendars, by its length and its first weekday, and each of them
 * comes back within 40 years, also over a century without a leap day. A search that finds nothing proves that no day matches.
 */
const YEARS = 41

/** Bits of the weekdays of a month: its first to its fifth, and its last. */
const EVERY_WEEK = 63
const LAST_WEEK = 32

/** What a cron expression matches, in wall-clock time. */
export interface CronFields {
  /** Values in rising order. */
  readonly seconds: readonly number[]
  readonly minutes: readonly number[]
  readonly hours: readonly number[]
  /** The bit of a month: 0 is January. */
  readonly months: number
  /** The bit of a day: 1 to 31. */
  readonly days: number
  /** Days whose nearest weekday matches. */
  readonly nearest: readonly number[]
  readonly lastDay: boolean
  readonly lastWeekday: boolean
  /** The weeks of each weekday, beginning with Sunday. */
  readonly weekdays: readonly number[]
  /** Whether a day must match both, instead of one of them. */
  readonly both: boolean
}

/** Reads an expression of five or six fields, or a nickname. The parser would take 80 KB of memory for each. Throws an `Error`. */
export const cronFieldsOf = (cron: string, mode: '5-part' | '6-part'): CronFields => {
  checkRanges(cron)
  const read = new CronPattern(cron, 'UTC', { mode })
  const { starDOM, starDOW, useAndLogic, lastDayOfMonth: lastDay, lastWeekday } = read
  return {
    seconds: valuesIn(read.second),
    minutes: valuesIn(read.minute),
    hours: valuesIn(read.hour),
    months: bitsOf(valuesIn(read.month)),
    days: bitsOf(valuesIn(read.day).map((day) => day + 1)),
    nearest: valuesIn(read.nearestWeekdays).map((day) => day + 1),
    lastDay,
    lastWeekday,
    weekdays: starDOW ? Array<number>(7).fill(EVERY_WEEK) : read.dayOfWeek.slice(0, 7),
    both: useAndLogic || starDOM || starDOW,
  }
}

/** The fields of an expression, from the last one. */
const RANGES = [
  ['day of the week', 0, 7],
  ['month', 1, 12],
  ['day of the month', 1, 31],
  ['hour', 0, 23],
  ['minute', 0, 59],
  ['second', 0, 59],
] as const

/** The parser counts some fields from another number, and its errors name a value that nobody wrote. Throws an `Error`. */
const checkRanges = (cron: string): void => {
  const fields = cron.trim().split(/\s+/).reverse()
  if (fields.length === 1) return // a nickname
  for (const [n, [name, least, most]] of RANGES.entries())
    for (const part of fields[n]?.split(',') ?? [])
      for (const bound of part.split('/')[0]?.split('-') ?? []) {
        const [, value] = /^\+?(\d+)(?:[LW]|#.*)?$/i.exec(bound) ?? []
        if (value !== undefined && (Number(value) < least || Number(value) > most))
          throw new Error(`${name}: expected ${least} to ${most}, got ${value}`)
      }
}

const valuesIn = (marks: readonly number[]): number[] => marks.flatMap((mark, value) => (mark ? [value] : []))

const bitsOf = (values: readonly number[]): number => values.reduce((bits, value) => bits | (1 << value), 0)

/** The first matching second after a wall-clock time; both are milliseconds as if the zone were UTC. Null if there is none. */
export const nextMatch = (fields: CronFields, afterMs: number): number | null => {
  const from = new Date(Math.floor(afterMs / 1000) * 1000 + 1000)
  const first = from.getUTCFullYear() * 12 + from.getUTCMonth()
  let day = from.getUTCDate()
  let time = timeFrom(fields, from.getUTCHours(), from.getUTCMinutes(), from.getUTCSeconds())
  if (time === null) day += 1
  for (let month = first; month < first + YEARS * 12; month++) {
    const found = dayFrom(fields, Math.floor(month / 12), month % 12, day)
    if (found !== null) {
      if (month !== first || found !== from.getUTCDate()) time = timeFrom(fields, 0, 0, 0)
      return Date.UTC(Math.floor(month / 12), month % 12, found) + (time ?? 0)
    }
    day = 1
  }
  return null
}

/** The first matching time of a day from a time, milliseconds since midnight; null if there is none. */
const timeFrom = (
  { hours, minutes, seconds }: CronFields,
  hour: number,
  minute: number,
  second: number,
): number | null => {
  for (const h of hours) {
    if (h < hour) continue
    for (const m of minutes) {
      if (h === hour && m < minute) continue
      const isSame = h === hour && m === minute
      const s = isSame ? seconds.find((each) => each >= second) : seconds[0]
      if (s !== undefined) return ((h * 60 + m) * 60 + s) * 1000
    }
  }
  return null
}

/** The first matching day of a month from a day; null if there is none. */
const dayFrom = (fields: CronFields, year: number, month: number, from: number): number | null => {
  if (!(fields.months & (1 << month))) return null
  const last = new Date(Date.UTC(year, month + 1, 0)).getUTCDate()
  const first = new Date(Date.UTC(year, month, 1)).getUTCDay()
  const weekdayOf = (day: number): number => (first + day - 1) % 7
  const days = daysOf(fields, last, weekdayOf)
  for (let day = from; day <= last; day++) {
    const weeks = fields.weekdays[weekdayOf(day)] ?? 0
    const ofWeek =
      (weeks & (1 << Math.floor((day - 1) / 7))) !== 0 || ((weeks & LAST_WEEK) !== 0 && day + 7 > last)
    const ofMonth = (days & (1 << day)) !== 0
    if (fields.both ? ofMonth && ofWeek : ofMonth || ofWeek) return day
  }
  return null
}

/** The bits of the days of a month that match its day of the month. */
const daysOf = (
  { days, nearest, lastDay, lastWeekday }: CronFields,
  last: number,
  weekdayOf: (day: number) => number,
): number => {
  const moved = nearest.filter((day) => day <= last).map((day) => nearestWeekday(day, last, weekdayOf(day)))
  if (lastDay) moved.push(last)
  if (lastWeekday) moved.push(nearestWeekday(last, last, weekdayOf(last)))
  return days | bitsOf(moved)
}

/** Saturday moves to Friday and Sunday to Monday, but never into another month. */
const nearestWeekday = (day: number, last: number, weekday: number): number => {
  if (weekday === 6) return day === 1 ? 3 : day - 1
  if (weekday === 0) return day === last ? day - 2 : day + 1
  return day
}
