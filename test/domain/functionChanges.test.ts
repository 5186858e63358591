import * as assert from 'uvu/assert'
import { functionChanges } from '../../src/domain/functionChanges.ts'
import { suite } from '../support/suite.ts'

const changes = suite('the changes of a deployment')

const on = (type: string) => ({ ns: 'a', var: 'on', on_event: type })
const plain = { ns: 'a', var: 'plain' }

changes('are the functions that one of the two builds lacks, and those with other metadata', () => {
  assert.equal(functionChanges([on('x'), plain], [on('y'), { ns: 'b', var: 'plain' }]), {
    added: ['b/plain'],
    removed: ['a/plain'],
    changed: ['a/on'],
  })
})

changes('of the first build are its functions', () =>
  assert.equal(functionChanges([], [plain]), { added: ['a/plain'], removed: [], changed: [] }),
)

changes('are none for equal metadata in another order of its keys', () => {
  const before = { ...plain, on_event: 'x', timeout: 5 }
  const after = { timeout: 5, on_event: 'x', ...plain }
  assert.equal(functionChanges([before], [after]), { added: [], removed: [], changed: [] })
})

changes.run()
