import * as assert from 'uvu/assert'
import fc from 'fast-check'
import { checkedPath, PATH_RULES } from '../../src/content/fileChecks.ts'
import { suite } from '../support/suite.ts'

const paths = suite('the documented pattern of a file path')

paths('matches accepted paths and no others', () => {
  const pattern = new RegExp(PATH_RULES.pattern)
  const isTaken = (path: string): boolean => {
    try {
      return checkedPath(path) === path
    } catch {
      return false
    }
  }
  const unit = fc.constantFrom('.', '/', 'a', 'é', '\n', '\u0085', '-')
  fc.assert(
    fc.property(
      fc.string({ unit, minLength: 1, maxLength: 12 }),
      (path) => pattern.test(path) === isTaken(path),
    ),
    { numRuns: 3000 },
  )
  assert.ok(pattern.test('orders/.hidden/..a/...'))
})

paths.run()
