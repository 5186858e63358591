import type { Stored } from './stored.ts'

/** The revision that a writer expects. */
export type Expected = number | 'none' | 'any' | 'exists'

export type Verdict =
  | { readonly kind: 'write' }
  /** The same events are already stored, up to this one. */
  | { readonly kind: 'repeat'; readonly last: Stored }
  | { readonly kind: 'wrong' }

/** The state of a stream that the rules need. */
export interface Situation {
  /** All events by revision, visible or not. */
  readonly events: readonly Stored[]
  readonly softDeleted: boolean
  readonly hasMetadata: boolean
  /** Finds an event of this stream among the last events of the log. */
  readonly recent: (id: string) => Stored | undefined
}

/**
 * Whether an append is written. At a concrete revision the ids alone decide whether it is a repeat, however old:
 * other data under an old id is dropped. Without a revision, only recent ids are recognized. An append that
 * repeats only a part fails.
 */
export const verdictOf = (situation: Situation, expected: Expected, ids: readonly string[]): Verdict => {
  const last = situation.events.length - 1
  if (expected === 'exists' && last < 0 && !situation.hasMetadata) return { kind: 'wrong' }
  if (expected === 'any' || expected === 'exists') return repeatOfRecent(situation, ids)
  const revision = expected === 'none' ? -1 : expected
  if (revision === last) return { kind: 'write' }
  if (revision > last) return { kind: 'wrong' }
  return repeatAt(situation, revision, ids)
}

const repeatOfRecent = ({ recent }: Situation, ids: readonly string[]): Verdict => {
  const known = ids.map((id) => recent(id))
  const last = known.at(-1)
  if (!known[0]) return { kind: 'write' }
  return last && known.every(Boolean) ? { kind: 'repeat', last } : { kind: 'wrong' }
}

const repeatAt = ({ events, softDeleted }: Situation, revision: number, ids: readonly string[]): Verdict => {
  const there = events.slice(revision + 1, revision + 1 + ids.length)
  const last = there.at(-1)
  const same = ids.findIndex((id, at) => there[at]?.id !== id)
  if (last && same === -1) return { kind: 'repeat', last }
  return softDeleted && revision === -1 && same === 0 ? { kind: 'write' } : { kind: 'wrong' }
}
