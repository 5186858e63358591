import * as assert from 'uvu/assert'
import { Histogram } from '../../src/ports/histogram.ts'
import { suite } from '../support/suite.ts'

const histogram = suite('a histogram')

histogram('counts a value in the first bucket whose bound it does not exceed', () => {
  const counted = new Histogram([1, 2, 5])
  for (const value of [0, 1, 1.5, 2, 5, 5.1, 1000]) counted.observe(value)
  assert.equal(counted.counts, [2, 2, 1, 2])
  assert.is(counted.count, 7)
  assert.is(counted.sum, 1014.6)
})

histogram.run()
