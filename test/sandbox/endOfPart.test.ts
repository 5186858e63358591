import * as assert from 'uvu/assert'
import { endOfPart } from '../../src/sandbox/frames.ts'
import { suite } from '../support/suite.ts'

const test = suite('the end of a part of a text')

test('is not within a character of two code units', () => {
  const ends = [0, 1, 2, 3, 4, 5, 9].map((length) => endOfPart('xx😀y', 0, length))
  assert.equal(ends, [0, 1, 2, 2, 4, 5, 9])
  assert.equal([endOfPart('x😀y', 1, 1), endOfPart('x😀y', 1, 2)], [1, 3])
})

test('is where it should be in a text of halves', () => assert.is(endOfPart('\ud83d\ud83dx', 0, 1), 1))

test.run()
