import { setTimeout as delay } from 'node:timers/promises'
import { START } from '../events/event.ts'
import { countOf, cursorAt } from '../ports/counterCursors.ts'
import type { CollectionSpec, ReadModels } from '../ports/readModels.ts'
import type { Liveness } from './liveness.ts'

/** A holder loses its lease after this much silence, milliseconds. */
const SILENT_MS = 2000
const LOOK_MS = 300

type LeaseDoc = { readonly holder: string }

const leases: CollectionSpec = { name: 'leases', version: 1, indexes: [] }

/** The node that holds a lease, alive or not; undefined if the lease is free. */
export const holderOf = async (name: string, readModels: ReadModels): Promise<string | undefined> =>
  (await readModels.reader<LeaseDoc>(leases).get(name))?.holder

interface Contender {
  readonly node_id: string
  readonly liveness: Liveness
  readonly readModels: ReadModels
  /** Whether this node can do the work now. While it cannot, it leaves the lease to the others. */
  readonly isAble: () => boolean
}

/**
 * Does the work on one node at a time, to save resources. If a node was paused, two nodes may do it for a moment, which
 * the work must tolerate. Resolves when the signal aborts; rejects when the read models or the work reject.
 */
export const holdLease = async (
  name: string,
  { node_id, liveness, readModels, isAble }: Contender,
  work: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> => {
  const collection = await readModels.writer<LeaseDoc>(leases)
  const read = async () => {
    const stored = (await collection.stored([name])).get(name)
    return { holder: stored?.doc?.holder, term: countOf(stored?.cursor) }
  }
  const write = (doc: LeaseDoc | null, term: number) =>
    collection.write([{ id: name, doc, cursor: cursorAt(term) }], START)
  const release = async () => {
    const { holder, term } = await read()
    if (holder === node_id) await write(null, term + 1)
  }
  const isMine = async () => (await read()).holder === node_id

  while (!signal.aborted) {
    const { holder, term } = await read()
    if (!isAble()) await release()
    else if (holder === undefined || holder === node_id || liveness.silentMs(holder) > SILENT_MS) {
      await write({ holder: node_id }, term + 1) // if two nodes try, one wins; the other sees it at its next read
      if (await isMine()) {
        try {
          await whileHeld(async () => isAble() && (await isMine()), work, signal)
        } finally {
          await release().catch(() => {}) // so that the next holder need not wait
        }
        continue
      }
    }
    await delay(LOOK_MS, undefined, { signal }).catch(() => {})
  }
}

const whileHeld = async (
  isHeld: () => Promise<boolean>,
  work: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> => {
  const lost = new AbortController()
  const until = AbortSignal.any([signal, lost.signal])
  const watch = async () => {
    while (!until.aborted) {
      await delay(LOOK_MS, undefined, { signal: until }).catch(() => {})
      if (!until.aborted && !(await isHeld())) lost.abort()
    }
  }
  const watching = watch().catch(() => lost.abort()) // a lease that cannot be read counts as lost
  try {
    await work(until)
  } finally {
    lost.abort()
    await watching
  }
}
