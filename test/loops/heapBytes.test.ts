import * as assert from 'uvu/assert'
import { heapBytesOf } from '../../src/loops/heapBytes.ts'
import { suite } from '../support/suite.ts'

const estimate = suite('an estimate of memory')
estimate('is at least the length of texts and buffers', () => {
  assert.ok(heapBytesOf({ a: ['x'.repeat(1000)] }) >= 1000)
  assert.ok(heapBytesOf(Buffer.alloc(1000)) >= 1000)
})
estimate('is several times the text of many small objects', () => {
  const small = Array.from({ length: 1000 }, () => ({}))
  assert.ok(heapBytesOf(small) > 10 * JSON.stringify(small).length)
})
estimate('knows every JSON value', () => {
  for (const value of [null, 1, true, '', [], {}, undefined]) assert.ok(heapBytesOf(value) > 0)
})
estimate.run()
