import * as assert from 'uvu/assert'
import { cursorOf } from '../../src/adapters/embedded/eventStore/cursors.ts'
import { Recent } from '../../src/adapters/shared/recent.ts'
import { fact } from '../contracts/eventStore/facts.ts'
import { suite } from '../support/suite.ts'

const SIZE = 62_000
const MOST_BYTES = 16 << 20

const recent = suite('the newest events in memory')
recent('are bounded by their bytes: few large ones are kept, and many small ones', () => {
  const keptOf = (payload: unknown): number => {
    const events = new Recent(0)
    const count = 2000
    for (let position = 1; position <= count; position++) {
      const stored = { stream: 's', revision: position - 1, cursor: cursorOf(position), at: '' }
      events.add({ ...fact('env', payload), ...stored }, JSON.stringify(payload).length)
    }
    return Array.from({ length: count }, (_, i) => events.at(i + 1)).filter((event) => event).length
  }
  const large = keptOf('x'.repeat(SIZE))
  assert.ok(large > 100 && large * SIZE <= MOST_BYTES, `${large} large events are kept`)
  assert.is(keptOf('x'), 2000)
  const objects = keptOf(Array.from({ length: 2000 }, () => ({}))) // 6 KB of text, and 100 KB of memory
  assert.ok(objects > 10 && objects <= 200, `${objects} events of many objects are kept`)
})
recent.run()
