import fc from 'fast-check'

/** The expected revision of an append, relative to the revision that the stream has. */
export type Aim = 'right' | 'none' | 'behind' | 'ahead'

/** An operation of the port. Appends, cursors and groups are named by their places among the earlier ones. */
export type StoreCommand =
  | { readonly op: 'append'; readonly stream: number; readonly count: number; readonly aim: Aim }
  /** The same append again: all its facts, the first of them, or together with a new one. */
  | { readonly op: 'repeat'; readonly append: number; readonly part: 'all' | 'first' | 'more' }
  /** Appends that follow each other, without waiting. */
  | { readonly op: 'pipeline'; readonly stream: number; readonly count: number }
  /** Appends of one fact with the same expected revision, at once: one of them succeeds. */
  | { readonly op: 'race'; readonly stream: number; readonly count: number }
  | { readonly op: 'notJson'; readonly stream: number }
  | { readonly op: 'read'; readonly stream: number; readonly from: number; readonly limit: number | null }
  | { readonly op: 'follow'; readonly stream: number; readonly after: number }
  | {
      readonly op: 'subscribe'
      readonly after: number | null
      readonly types: Types
      readonly env: number | null
    }
  | {
      readonly op: 'consume'
      readonly group: number
      readonly inFlight: number
      readonly acks: 'all' | 'some' | 'retry'
    }
  | { readonly op: 'expire'; readonly stream: number }
  | { readonly op: 'ends' }
  | { readonly op: 'reopen' }

export type Types = 'all' | 'data' | 'created' | 'none'

const stream = fc.nat(4)
const op = <const T extends string>(value: T) => fc.constant(value)
const of = <T>(weight: number, arbitrary: fc.Arbitrary<T>) => ({ weight, arbitrary })

const aim = fc.constantFrom<Aim>('right', 'right', 'right', 'right', 'none', 'behind', 'ahead')

const command: fc.Arbitrary<StoreCommand> = fc.oneof(
  of(16, fc.record({ op: op('append'), stream, count: fc.nat(4), aim })),
  of(
    6,
    fc.record({ op: op('repeat'), append: fc.nat(60), part: fc.constantFrom('all', 'all', 'first', 'more') }),
  ),
  of(3, fc.record({ op: op('pipeline'), stream, count: fc.integer({ min: 1, max: 12 }) })),
  of(3, fc.record({ op: op('race'), stream, count: fc.integer({ min: 2, max: 6 }) })),
  of(1, fc.record({ op: op('notJson'), stream })),
  of(
    8,
    fc.record({
      op: op('read'),
      stream,
      from: fc.nat(30),
      limit: fc.option(fc.integer({ min: 1, max: 9 }), { nil: null }),
    }),
  ),
  of(4, fc.record({ op: op('follow'), stream, after: fc.integer({ min: -1, max: 20 }) })),
  of(
    4,
    fc.record({
      op: op('subscribe'),
      after: fc.option(fc.nat(60), { nil: null }),
      types: fc.constantFrom<Types>('all', 'data', 'created', 'none'),
      env: fc.option(fc.nat(1), { nil: null }),
    }),
  ),
  of(
    2,
    fc.record({
      op: op('consume'),
      group: fc.nat(2),
      inFlight: fc.constantFrom(1, 3, 64),
      acks: fc.constantFrom('all', 'all', 'some', 'retry'),
    }),
  ),
  of(1, fc.record({ op: op('expire'), stream })),
  of(2, fc.record({ op: op('ends') })),
  of(1, fc.record({ op: op('reopen') })),
)

export const storeCommands = (maxLength: number): fc.Arbitrary<StoreCommand[]> =>
  fc.array(command, { maxLength, size: 'max' })
