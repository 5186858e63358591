import * as assert from 'uvu/assert'
import { duration } from '../../src/cli/figures.ts'
import { durationText } from '../../src/ui/parts/durationText.ts'
import { suite } from '../support/suite.ts'

const texts = suite('a duration for people')

texts('is rounded to the next unit as a whole', () => {
  for (const [ms, text] of [
    [-300_000, '0 ms'],
    [0.4, '0 ms'],
    [999.7, '1.0 s'],
    [59_949, '59.9 s'],
    [59_950, '1 min 0 s'],
    [119_800, '2 min 0 s'],
    [3_599_499, '59 min 59 s'],
    [3_599_500, '1 h 0 min'],
    [7_199_000, '2 h 0 min'],
  ] as const)
    assert.is(durationText(ms), text)
})

texts('is rounded in the command line too', () => {
  assert.is(duration(999.4), '999 ms')
  assert.is(duration(999.7), '1 s')
  assert.is(duration(119_800), '2 min 0 s')
})

texts.run()
