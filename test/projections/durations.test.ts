import fc from 'fast-check'
import * as assert from 'uvu/assert'
import {
  bucketOf,
  countOf,
  type Durations,
  mergedDurations,
  percentileOf,
  RELATIVE_ERROR,
} from '../../src/projections/durations.ts'
import { SEED } from '../support/randomOf.ts'
import { suite } from '../support/suite.ts'

const histogramOf = (all: readonly number[]): Durations =>
  mergedDurations(all.map((ms) => ({ [bucketOf(ms)]: 1 })))

/** The smallest duration that `percent` of them do not exceed. */
const exactly = (all: readonly number[], percent: number): number =>
  all.toSorted((a, b) => a - b)[Math.max(1, Math.ceil((percent / 100) * all.length)) - 1] ?? NaN

/** Durations of every magnitude, up to 49 days. */
const ms = fc.integer({ min: 0, max: 32_000 }).map((exponent) => Math.round(2 ** (exponent / 1000)) - 1)
const PERCENTS = [50, 95, 99]

const durations = suite(`a histogram of durations (SVC_TEST_SEED=${SEED})`, { timeoutMs: 60_000 })

durations('has each percentile within its stated error', () =>
  fc.assert(
    fc.property(
      fc.array(ms, { minLength: 1, maxLength: 300 }),
      fc.constantFrom(...PERCENTS),
      (all, percent) => {
        const expected = exactly(all, percent)
        const found = percentileOf(histogramOf(all), percent) ?? NaN
        assert.ok(
          Math.abs(found - expected) <= expected * (RELATIVE_ERROR + 1e-9),
          `p${percent}: ${found} for ${expected}`,
        )
      },
    ),
    { seed: SEED },
  ),
)

durations('is the same in any order of merging', () =>
  fc.assert(
    fc.property(fc.array(ms), fc.array(ms), fc.array(ms), (a, b, c) => {
      const [x, y, z] = [a, b, c].map(histogramOf) as [Durations, Durations, Durations]
      const all = histogramOf([...a, ...b, ...c])
      assert.equal(mergedDurations([mergedDurations([x, y]), z]), all)
      assert.equal(mergedDurations([z, mergedDurations([y, x])]), all)
      assert.is(countOf(all), a.length + b.length + c.length)
    }),
    { seed: SEED },
  ),
)

durations('distinguishes every millisecond up to 15 ms', () => {
  for (let exact = 0; exact <= 15; exact++)
    assert.is(Math.round(percentileOf(histogramOf([exact]), 50) ?? NaN), exact)
})

durations('keeps buckets few: 515 for all durations', () => {
  assert.is(bucketOf(-5), 0)
  assert.is(bucketOf(NaN), 0)
  assert.is(bucketOf(1), 1)
  assert.is(bucketOf(2 ** 32), 513)
  assert.is(bucketOf(Infinity), 513)
})

durations('of no run has no percentile', () => assert.is(percentileOf({}, 50), null))
durations.run()
