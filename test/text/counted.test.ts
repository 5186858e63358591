import * as assert from 'uvu/assert'
import { counted } from '../../src/text/counted.ts'
import { suite } from '../support/suite.ts'

const test = suite('a number with its noun')

test('is singular for one only', () => {
  assert.equal(
    [0, 1, 2].map((value) => counted(value, 'key')),
    ['0 keys', '1 key', '2 keys'],
  )
})

test.run()
