import { type Cursor, START } from '../../events/event.ts'

/** The findings of the engines about the log, before anything is written. */
export interface Traces {
  readonly log: {
    /** Its ids, the current one last; empty before its first start, and in a log of an earlier version. */
    readonly ids: readonly string[]
    readonly hasFacts: boolean
    readonly head: Cursor
    /** False: no event was ever at the checkpoint of the read models, although the log is longer. */
    readonly hadCheckpoint: boolean
    /** The newest position that the event store remembers apart from the log. */
    readonly remembered: Cursor
  }
  readonly readModels: { readonly log_id: string | null; readonly checkpoint: Cursor | null }
  readonly blobs: {
    readonly log_id: string | null
    /** Whether there is any blob besides root keys, which are stored before the log is founded. */
    readonly isUsed: boolean
  }
}

/** Part of what an engine has of a log is not in the log. */
export interface Loss {
  readonly seenBy: 'event store' | 'read models' | 'blobs'
  /** `end`: the events after a position are missing. `log`: there is no log. `other`: the log is another one. */
  readonly missing: 'end' | 'log' | 'other'
  /** The missing events; null when their positions are unknown. */
  readonly range: { readonly after: Cursor; readonly upTo: Cursor } | null
}

/**
 * The rules by which a loss is recognized. Everything derived from the log is at most as new as the log and carries one of
 * its ids, so that anything beyond the head or of an unknown id proves a loss. What is up to the head may be lost too: others
 * may have written over it. `isCursor`: whether a checkpoint can be of this event store.
 */
export const lossesIn = (
  { log, readModels, blobs }: Traces,
  isCursor: (text: string) => boolean,
): readonly Loss[] => {
  const { ids, hasFacts, head, hadCheckpoint, remembered } = log
  const isNew = ids.length === 0 && !hasFacts
  const isUnknown = (id: string | null) => id !== null && !ids.includes(id)
  const losses: Loss[] = []
  const lost = (seenBy: Loss['seenBy'], missing: Loss['missing'], upTo: Cursor | null): void =>
    void losses.push({
      seenBy,
      missing,
      range: upTo === null ? null : { after: missing === 'end' ? head : START, upTo },
    })

  if (remembered > head) lost('event store', isNew ? 'log' : 'end', remembered)

  const { checkpoint } = readModels
  const isFolded = checkpoint !== null && checkpoint !== START
  if (isUnknown(readModels.log_id) || (isFolded && (isNew || !isCursor(checkpoint))))
    lost('read models', isNew ? 'log' : 'other', isFolded && isCursor(checkpoint) ? checkpoint : null)
  else if (isFolded && isOfNow(readModels.log_id, ids) && (checkpoint > head || !hadCheckpoint))
    lost('read models', 'end', checkpoint > head ? checkpoint : null)

  if (isUnknown(blobs.log_id) || (isNew && blobs.isUsed)) lost('blobs', isNew ? 'log' : 'other', null)
  return losses
}

/** Read models of a former id are from before an accepted loss, and are built again without a question. */
const isOfNow = (log_id: string | null, ids: readonly string[]): boolean =>
  log_id === null || log_id === ids.at(-1)
