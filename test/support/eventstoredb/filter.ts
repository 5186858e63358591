import type { Stored } from './stored.ts'

/** Events considered between two checkpoints when the caller names no window. */
const DEFAULT_WINDOW = 32

/** Which events of `$all` a reader wants, as it can be stored. */
export interface FilterSpec {
  readonly on: 'stream' | 'type'
  /** Any of these at the beginning; when there are none, the regular expression counts. */
  readonly prefixes: readonly string[]
  readonly regex: string
  /** After how many events, wanted or not, the reader is told how far it came. */
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

/** Streams and groups have a type of their own for it. */
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

/** Throws when the regular expression is none. */
export const filterOf = ({ on, prefixes, regex, checkpointEvery }: FilterSpec): Filter => {
  const expression = new RegExp(regex)
  const fits = (text: string): boolean =>
    prefixes.length > 0 ? prefixes.some((prefix) => text.startsWith(prefix)) : expression.test(text)
  return { matches: (event) => fits(event[on]), checkpointEvery }
}
