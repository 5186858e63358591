import type { Stored } from './stored.ts'

/** The default number of events between two checkpoints. */
const DEFAULT_WINDOW = 32

/** A filter on `$all` in a form that can be stored. */
export interface FilterSpec {
  readonly on: 'stream' | 'type'
  /** Prefixes, of which any may match. Without prefixes, the regular expression applies. */
  readonly prefixes: readonly string[]
  readonly regex: string
  /** The number of events, matching or not, after which the reader gets its position. */
  readonly checkpointEvery: number
}

export interface Filter {
  readonly matches: (event: Stored) => boolean
  readonly checkpointEvery: number
}

interface Expression {
  getRegex(): string
  getPrefixList(): string[]
}

/** Streams and groups have different message types for a filter. */
interface FilterMessage {
  getStreamIdentifier(): Expression | undefined
  getEventType(): Expression | undefined
  hasMax(): boolean
  getMax(): number
  getCheckpointintervalmultiplier(): number
}

export const filterSpecOf = (message: FilterMessage): FilterSpec => {
  const byStream = message.getStreamIdentifier()
  const expression = byStream ?? message.getEventType()
  const window = message.hasMax() ? message.getMax() : DEFAULT_WINDOW
  return {
    on: byStream ? 'stream' : 'type',
    prefixes: expression?.getPrefixList() ?? [],
    regex: expression?.getRegex() ?? '',
    checkpointEvery: window * Math.max(1, message.getCheckpointintervalmultiplier()),
  }
}

/** Throws if the regular expression is invalid. */
export const filterOf = ({ on, prefixes, regex, checkpointEvery }: FilterSpec): Filter => {
  const expression = new RegExp(regex)
  const fits = (text: string): boolean =>
    prefixes.length > 0 ? prefixes.some((prefix) => text.startsWith(prefix)) : expression.test(text)
  return { matches: (event) => fits(event[on]), checkpointEvery }
}
