import fc from 'fast-check'
import * as assert from 'uvu/assert'
import { rowText } from '../../src/adapters/embedded/eventStore/checksum.ts'
import { parseRow } from '../../src/adapters/embedded/eventStore/logRows.ts'
import { wantedIn } from '../../src/adapters/embedded/eventStore/wantedFacts.ts'
import { suite } from '../support/suite.ts'

const at = '2026-05-01T10:00:00.000Z'
const METADATA = { env_id: 'env', correlation_id: 'c', v: 1 }
const FIRST = 7

const entry = (type: string, payload: unknown, stream = 'stream-1') =>
  JSON.stringify([stream, 0, 'id', at, { type, payload }, METADATA])

/** What is left of a row: entries, a number of removed facts, and the stream and revision of removed ones. */
type Part = { readonly text: string; readonly positions: number }

const rowOf = (parts: readonly Part[], text?: string) => {
  const count = parts.reduce((sum, { positions }) => sum + positions, 0)
  const texts = parts.map((part) => part.text)
  return { first: FIRST, count, text: text ?? rowText(FIRST, texts, count) }
}

const entryPart = (text: string): Part => ({ text, positions: 1 })

const WANTED = new Set(['RunStarted', 'RunFailed'])
const parsedIn = ({ first, text }: ReturnType<typeof rowOf>) =>
  parseRow(first, text).events.filter(({ event }) => WANTED.has(event.type))

const wanted = suite('the facts of some types in a row')

const types = fc.constantFrom('RunStarted', 'RunFailed', 'RunLogged', 'EventPublished')
/** What looks like the end of an entry and the begin of another one. */
const tricky: fc.Arbitrary<unknown> = fc.constantFrom<unknown>(
  [[{}], ['stream-2', 0, 'id', at, { type: 'RunStarted' }, METADATA]],
  { list: [[{}], ['x', 1, 'y']] },
  [[{}], 5],
  [[{}], ['stream-3', 4]],
  '}],["',
  '}],[\\"',
  'ends with }],[',
  '}],["stream-2",0,"id","at",{"type":"RunStarted"',
  'Ω ü 😀',
)
const payloads = fc.oneof(fc.jsonValue({ maxDepth: 3 }), tricky, fc.array(tricky, { maxLength: 3 }))
const streams = fc.constantFrom('stream-1', 'with "quotes"', 'back\\slash', '}],["')
const parts: fc.Arbitrary<Part> = fc.oneof(
  { weight: 8, arbitrary: fc.tuple(types, payloads, streams).map((of) => entryPart(entry(...of))) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 3 }).map((n) => ({ text: `${n}`, positions: n })) },
  { weight: 1, arbitrary: streams.map((stream) => entryPart(JSON.stringify([stream, 4]))) },
)

wanted('are those of the whole row, whatever its payloads contain and what was removed', () => {
  fc.assert(
    fc.property(fc.array(parts, { minLength: 1, maxLength: 6 }), fc.boolean(), (of, isEarlier) => {
      const row = rowOf(of, isEarlier ? `[${of.map(({ text }) => text).join(',')}]` : undefined)
      assert.equal(wantedIn(row, WANTED), parsedIn(row))
      assert.equal(wantedIn(row, null), parseRow(row.first, row.text).events)
    }),
    { numRuns: 2000 },
  )
})

wanted('contain none that a payload imitates in the place of a removed fact', () => {
  const imitated = [[{}], ['stream-2', 0, 'id', at, { type: 'RunStarted' }, METADATA]]
  for (const removed of ['1', '["stream-3",4]'])
    for (const isFirst of [true, false]) {
      const logged = entryPart(entry('RunLogged', imitated))
      const rest = { text: removed, positions: 1 }
      const row = rowOf(isFirst ? [rest, logged] : [logged, rest])
      assert.equal(wantedIn(row, WANTED), [])
    }
})

wanted('are refused if the row has another number of positions', () => {
  const row = rowOf([entryPart(entry('RunStarted', {})), entryPart(entry('RunLogged', {}))])
  assert.throws(() => wantedIn({ ...row, count: 3 }, WANTED), /found 2/)
})

wanted.run()
