import * as assert from 'uvu/assert'
import { paced } from '../../src/egress/pace.ts'
import { suite } from '../support/suite.ts'

const pace = suite('the rate of connections')

pace('a burst begins at once, and the rest waits for one interval each', () => {
  const waitMs = paced()
  const waits = Array.from({ length: 600 }, () => waitMs(0))
  const late = waits.filter((ms) => ms > 0)
  assert.ok(late.length > 0 && late.length < 100, `Expected a burst, got ${waits.length - late.length}`)
  assert.equal(
    late,
    late.map((_, index) => 5 * (index + 1)),
  )
})

pace('a pause restores the burst, and no more than that', () => {
  const waitMs = paced()
  for (let i = 0; i < 600; i++) waitMs(0)
  const later = Array.from({ length: 600 }, () => waitMs(3_600_000))
  const burst = later.filter((ms) => ms === 0).length
  assert.ok(burst > 500 && burst < 600, `Expected the burst of the beginning, got ${burst}`)
})

pace.run()
