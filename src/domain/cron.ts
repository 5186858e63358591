import { BoundedMap } from '../boundedMap.ts'
import { cronFieldsOf, nextMatch, type CronFields } from './cronFields.ts'

/** Most schedules of a service have one of few expressions. */
const parsed = new BoundedMap<string, CronFields>(256)

const parse = (cron: string, mode: '5-part' | '6-part'): CronFields => {
  const known = parsed.get(cron)
  if (known) return known
  const made = cronFieldsOf(cron, mode)
  parsed.set(cron, made)
  return made
}

/** Characters of an expression. One that lists every value of each field has 500. */
const MAX_LENGTH = 1024
const DAY_MS = 86_400_000
/** No zone moves its clock by more. */
const LARGEST_CHANGE_MS = 2 * DAY_MS

/**
 * Computes when a cron expression is due. It follows Vixie cron's rule for clock changes, which no available library
 * implements. Fixed hours, such as `3` or `9-17`, run exactly once a day: a skipped hour at the first instant after the gap, a repeated
 * hour the first time. A wildcard (also one with a step) follows elapsed
 * time.
 */
export interface Ticks {
  /** The first tick after an instant, milliseconds since 1970; null when there is none. */
  after(ms: number): number | null
}

/** The fields of a cron expression, for messages. */
export const CRON_FIELDS = 'five fields, or six that begin with the seconds'

/** Whether a schedule can follow a time zone: `Intl` also knows names such as `PST`, for which there are no rules. */
export const isTimeZone = (timezone: string): boolean => {
  try {
    Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(timezone)
    return true
  } catch {
    return false
  }
}

/** Throws an `Error` that explains the fault of the expression or of the IANA time zone. */
export const ticksOf = (cron: string, timezone: string): Ticks => {
  if (cron.length > MAX_LENGTH)
    throw new Error(`Expected a cron expression of at most ${MAX_LENGTH} characters, got ${cron.length}`)
  const fields = cron.trim().split(/\s+/)
  const nickname = fields.length === 1 && /^@[a-z]+$/i.test(cron.trim())
  const withSeconds = fields.length === 6
  if (fields.length !== 5 && !withSeconds && !nickname) {
    throw new Error(`Expected a cron expression of ${CRON_FIELDS}, got ${JSON.stringify(cron)}`)
  }
  const wall = parse(cron, withSeconds ? '6-part' : '5-part')
  const hour = fields[withSeconds ? 2 : 1] ?? '*'
  const fixedHour = nickname ? !/hourly/i.test(cron) : !/[*?]/.test(hour)
  const zoned = (ms: number) => Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(timezone)
  if (!isTimeZone(timezone)) throw new Error(`Expected an IANA time zone, got ${JSON.stringify(timezone)}`)
  const nextWall = (wallMs: number): number | null => nextMatch(wall, wallMs)
  const offsetMs = (ms: number): number => zoned(ms).offsetNanoseconds / 1e6

  const byWallClock = (ms: number): number | null => {
    const at = nextWall(ms + offsetMs(ms) - 1)
    if (at === null) return null
    const instant = instantOf(at, timezone)
    if (instant > ms) return instant
    // This hour is repeated: its ticks have passed, so the next one comes after it.
    const change = zoned(ms + 1).getTimeZoneTransition('previous')?.epochMilliseconds ?? ms
    const later = nextWall(Math.max(at, change + offsetMs(change - 1) - 1))
    return later === null ? null : instantOf(later, timezone)
  }

  const byElapsedTime = (ms: number): number | null => {
    for (let from = ms + 1; ;) {
      const offset = offsetMs(from)
      const at = nextWall(from + offset - 1)
      if (at === null) return null
      const change = zoned(from).getTimeZoneTransition('next')?.epochMilliseconds
      if (change === undefined || at - offset < change) return at - offset
      // The search continues from there, with the new offset. No tick comes before a distant one, whatever the offset.
      const near = at - offset - LARGEST_CHANGE_MS
      from = change - from > LARGEST_CHANGE_MS && near > change ? near : change
    }
  }

  return { after: fixedHour ? byWallClock : byElapsedTime }
}

/** Returns the instant of a wall-clock time: the first of two for a repeated time, the end of the gap for a skipped one. */
const instantOf = (wallMs: number, timezone: string): number => {
  const plain = Temporal.Instant.fromEpochMilliseconds(wallMs).toZonedDateTimeISO('UTC').toPlainDateTime()
  const zoned = plain.toZonedDateTime(timezone, { disambiguation: 'compatible' })
  if (zoned.toPlainDateTime().equals(plain)) return zoned.epochMilliseconds
  const before = plain.toZonedDateTime(timezone, { disambiguation: 'earlier' })
  return before.getTimeZoneTransition('next')?.epochMilliseconds ?? zoned.epochMilliseconds
}
