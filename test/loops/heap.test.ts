import * as assert from 'uvu/assert'
import { Heap } from '../../src/loops/heap.ts'
import { suite } from '../support/suite.ts'

const heap = suite('a heap')

heap('returns its values in order, whatever the order of their arrival', () => {
  const values = Array.from({ length: 500 }, (_, i) => (i * 7919) % 101)
  const queue = new Heap<number>((a, b) => a < b)
  for (const value of values) queue.push(value)
  assert.is(queue.size, 500)
  assert.is(queue.first, 0)
  const popped = Array.from({ length: 500 }, () => queue.pop())
  assert.equal(
    popped,
    values.toSorted((a, b) => a - b),
  )
  assert.is(queue.size, 0)
})

heap('without values has no first one', () => {
  const queue = new Heap<number>((a, b) => a < b)
  assert.is(queue.first, undefined)
  assert.is(queue.pop(), undefined)
  queue.push(1)
  assert.is(queue.pop(), 1)
  assert.is(queue.pop(), undefined)
})

heap.run()
