import * as assert from 'uvu/assert'
import { Tails } from '../../src/adapters/embedded/eventStore/tails.ts'
import { suite } from '../support/suite.ts'

const tails = suite('the newest positions of streams')

const withEvents = (count: number, first = 0): Tails => {
  const kept = new Tails()
  for (let revision = first; revision < first + count; revision++) kept.add('a', revision, 100 + revision)
  return kept
}

tails('are returned from a revision, up to the limit', () => {
  assert.equal(withEvents(5).from('a', 2, 2), [102, 103])
  assert.equal(withEvents(5).from('a', 4, 10), [104])
  assert.equal(withEvents(5).from('a', 5, 10), [])
})

tails('are unknown for other streams and for revisions before the first one in memory', () => {
  assert.is(withEvents(5).from('b', 0, 10), undefined)
  assert.is(withEvents(5, 3).from('a', 2, 10), undefined)
})

tails('of a long stream are bounded, and the newest remain', () => {
  const kept = withEvents(10_000)
  assert.is(kept.from('a', 0, 1), undefined)
  assert.is(kept.from('a', 9000, 1), undefined)
  assert.equal(kept.from('a', 9998, 10), [10_098, 10_099])
})

tails('begin again when a revision does not follow the last one', () => {
  const kept = withEvents(5)
  kept.add('a', 2, 900)
  assert.is(kept.from('a', 1, 10), undefined)
  assert.equal(kept.from('a', 2, 10), [900])
})

tails.run()
