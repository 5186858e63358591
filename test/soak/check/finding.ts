import { describeFact, type Recorded } from '../../../src/events/event.ts'

/** What a finding is about. */
export type Rule =
  | 'lost'
  | 'duplicated'
  | 'reordered'
  | 'stuck'
  | 'stale read'
  | 'illegal transition'
  | 'wrong outcome'
  | 'wrong reply'
  | 'incident'

/** A difference between the records and the guarantees. */
export interface Finding {
  readonly rule: Rule
  readonly message: string
  /** The facts and records involved, one line each. */
  readonly facts: readonly string[]
}

/** Lines about facts in a finding: more do not help to understand it. */
const SHOWN = 12

export const findingOf = (
  rule: Rule,
  message: string,
  facts: readonly (Recorded | string)[] = [],
): Finding => ({
  rule,
  message,
  facts: facts.slice(0, SHOWN).map((fact) => (typeof fact === 'string' ? fact : lineOf(fact))),
})

const lineOf = (fact: Recorded): string =>
  `${describeFact(fact)} at ${fact.at}: ${JSON.stringify(fact.event).slice(0, 300)}`
