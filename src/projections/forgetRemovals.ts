import { setTimeout as delay } from 'node:timers/promises'
import { clock } from '../clock.ts'
import { isRetryable } from '../errors.ts'
import { type Cursor, START } from '../events/event.ts'
import type { WritableCollection } from '../ports/readModels.ts'

/** Pauses between looks at the checkpoint, milliseconds. */
const LOOK_MS = 5 * 60_000
/** A removal is forgotten so long after the checkpoint has passed it: much longer than `Freshness` permits older writes. */
const GRACE_MS = 60 * 60_000

/** When removals are forgotten. */
export interface Pace {
  readonly lookMs: number
  readonly graceMs: number
}

/** The checkpoints of the last time, from which follows what was passed long enough ago. */
export class PassedCheckpoints {
  readonly #graceMs: number
  #seen: { readonly checkpoint: Cursor; readonly atMs: number }[] = []

  constructor(graceMs: number) {
    this.#graceMs = graceMs
  }

  /**
   * Notes the present checkpoint. Returns the newest one that was reached `graceMs` ago; null if none is known. A checkpoint
   * that has moved back is that of other documents, so nothing of before applies to them. The monotonic clock stands still in
   * a suspended machine, and cannot be set: the grace is never shorter.
   */
  note(checkpoint: Cursor, nowMs: number): Cursor | null {
    const last = this.#seen.at(-1)
    if (last && checkpoint < last.checkpoint) this.#seen = []
    if (checkpoint !== this.#seen.at(-1)?.checkpoint) this.#seen.push({ checkpoint, atMs: nowMs })
    const passed = this.#seen.findLastIndex(({ atMs }) => nowMs - atMs >= this.#graceMs)
    if (passed < 0) return null
    this.#seen.splice(0, passed)
    return this.#seen[0]?.checkpoint ?? null
  }
}

type Forgetting = Pick<WritableCollection, 'checkpoint' | 'forgetRemovals'>

/**
 * Does the work, and forgets meanwhile the removals of documents that nothing can restore any more: each document that ever
 * existed would take space for ever. Ends when either ends.
 */
export const whileForgetting = async (
  collection: Forgetting,
  pace: Partial<Pace>,
  work: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> => {
  const ending = new AbortController()
  const until = AbortSignal.any([signal, ending.signal])
  const both = [work(until), forgetRemovals(collection, pace, until)].map((each) =>
    each.finally(() => ending.abort()),
  )
  await Promise.allSettled(both)
  await Promise.all(both)
}

const forgetRemovals = async (
  collection: Forgetting,
  { lookMs = LOOK_MS, graceMs = GRACE_MS }: Partial<Pace>,
  signal: AbortSignal,
): Promise<void> => {
  const passed = new PassedCheckpoints(graceMs)
  let forgotten = START
  const look = async (): Promise<void> => {
    const checkpoint = (await collection.checkpoint()) ?? START
    const upTo = passed.note(checkpoint, clock.monotonic()) // it was reached before this moment
    if (upTo === null || upTo === forgotten) return
    while (!signal.aborted && (await collection.forgetRemovals(upTo)) > 0);
    forgotten = upTo
  }
  while (!signal.aborted) {
    await look().catch((error: unknown) => {
      if (!isRetryable(error)) throw error // else the next look tries again
    })
    await delay(lookMs, undefined, { signal, ref: false }).catch(() => {})
  }
}
