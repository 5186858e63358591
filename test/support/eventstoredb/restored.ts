import { Log } from './log.ts'
import { systemEvent } from './systemEvents.ts'

/** The log as it was when it had `count` events. */
export const backupOf = (log: Log, count: number): Log => {
  const copy = new Log()
  for (const { stream, ...event } of log.all.slice(copy.all.length, count))
    copy.append(stream, [event], 'any')
  return copy
}

/** Adds records of the server itself until the log is longer than another one, as its statistics do in time. */
export const outgrow = (log: Log, other: Log): void => {
  const covering = 'x'.repeat(other.end - log.end) // one record over all that was lost: no former position is in it
  for (const data of [covering, '']) log.append('$stats-127.0.0.1:2113', [systemEvent('$stats', data)], 'any')
}
