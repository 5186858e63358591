import * as assert from 'uvu/assert'
import { cpuShare } from '../../src/sandbox/cpuShare.ts'
import { suite } from '../support/suite.ts'

const share = suite('the share of a processor that a child gets')

const rules: readonly [load: number, processors: number, expected: number][] = [
  [0, 2, 1],
  [2, 2, 1],
  [3, 2, 2 / 3],
  [100, 2, 0.5],
  [8, 8, 1],
]
for (const [load, processors, expected] of rules) {
  share(`is ${expected} at a load of ${load} on ${processors} processors`, () => {
    assert.is(cpuShare(load, processors), expected)
  })
}

share.run()
