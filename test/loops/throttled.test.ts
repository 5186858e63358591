import * as assert from 'uvu/assert'
import { throttled } from '../../src/loops/throttled.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { withoutTime } from '../support/withoutTime.ts'

const warnings = suite('a throttled warning')

warnings('is logged once in its time, and the next one has the number of those between', async () => {
  const lines: unknown[] = []
  const warn = throttled({ warn: (...line) => lines.push(line) }, 100)
  await withoutTime(() => {
    warn('away', { run_id: 'a' })
    for (const run_id of ['b', 'c', 'd']) warn('away', { run_id })
  })
  assert.equal(lines, [['away', { run_id: 'a' }]])
  let more = 0
  await until(() => {
    warn('away', { run_id: 'e' })
    more++
    return lines.length === 2
  })
  assert.equal(lines[1], ['away', { run_id: 'e', suppressed: 3 + more - 1 }])
})

warnings.run()
