import { nearest } from '../sandbox/nearestName.ts'

/** Refuses keys that would be ignored. `what` names the object. */
export const demandKeys = (what: string, given: object, known: readonly string[]): void => {
  for (const key of Object.keys(given)) {
    if (known.includes(key)) continue
    const likely = nearest(key, known)
    const wanted = likely === undefined ? `one of the keys ${known.join(', ')}` : `the key ${likely}`
    throw new TypeError(`${what}: expected ${wanted}, got ${JSON.stringify(key.slice(0, 80))}`)
  }
}

/** A time as a `Date`, as ISO 8601 text, or as milliseconds since 1970. */
export type Time = Date | string | number

/** Milliseconds since 1970. `what` names the field. */
export const msOf = (what: string, time: Time): number => {
  const ms = time instanceof Date ? time.getTime() : typeof time === 'string' ? Date.parse(time) : time
  if (Number.isFinite(ms) && Math.abs(ms) <= 8.64e15) return ms
  throw new TypeError(
    `${what}: expected a Date, an ISO 8601 time or milliseconds since 1970, got ${String(time).slice(0, 80)}`,
  )
}
