import type { Log } from './log.ts'
import type { From } from './question.ts'
import type { Stored } from './stored.ts'

/** The events of a stream or of `$all`, in order. */
export interface Feed {
  /** The next event, filtered or not; undefined when there is none yet. */
  next(): Stored | undefined
  /** The approximate number of remaining events. */
  readonly behind: number
}

/** Begins after a position, or at it when `inclusive`. */
export const feedOfAll = (log: Log, from: From, inclusive: boolean): Feed => {
  let index = from === 'start' ? 0 : from === 'end' ? log.all.length : log.indexOf(from)
  if (typeof from === 'number' && !inclusive && log.all[index]?.position === from) index++
  return {
    next: () => (index < log.all.length ? log.all[index++] : undefined),
    get behind() {
      return log.all.length - index
    },
  }
}

/** Begins after a revision, or at it when `inclusive`. */
export const feedOfStream = (log: Log, stream: string, from: From, inclusive: boolean): Feed => {
  const last = log.events(stream).length
  let revision = from === 'start' ? 0 : from === 'end' ? last : inclusive ? from : from + 1
  return {
    next: () => {
      const events = log.events(stream)
      if (revision >= events.length) return undefined
      revision = Math.max(revision, log.firstShown(stream))
      return events[revision++]
    },
    get behind() {
      return Math.max(0, log.events(stream).length - revision)
    },
  }
}
