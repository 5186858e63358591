import type { Stored } from './stored.ts'

/** What a writer expects of a stream: its last revision, or less. */
export type Expected = number | 'none' | 'any' | 'exists'

export type Verdict =
  | { readonly kind: 'write' }
  /** The same events are there already, up to this one. */
  | { readonly kind: 'repeat'; readonly last: Stored }
  | { readonly kind: 'wrong' }

/** What the rules ask of a stream. */
export interface Situation {
  /** All its events, by revision, shown or not. */
  readonly events: readonly Stored[]
  readonly softDeleted: boolean
  readonly hasMetadata: boolean
  /** An event of this stream among the last ones written anywhere. */
  readonly recent: (id: string) => Stored | undefined
}

/**
 * Whether an append is written. At a concrete revision the ids alone decide whether it is a repeat, however old:
 * other data under an old id is dropped. Without one only recent ids are known again. An append that
 * is half a repeat is wrong.
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
