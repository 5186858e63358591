import * as assert from 'uvu/assert'
import { BoundedMap } from '../src/boundedMap.ts'
import { suite } from './support/suite.ts'

const keys = (count: number): number[] => Array.from({ length: count }, (_, i) => i)
const kept = (map: BoundedMap<number, unknown>, count: number): number[] =>
  keys(count).filter((key) => map.get(key) !== undefined)

const bounded = suite('a bounded map')

bounded('keeps the entries that were used last', () => {
  const map = new BoundedMap<number, string>(10)
  for (const key of keys(100)) {
    map.set(key, 'x')
    map.get(0)
  }
  const found = kept(map, 100)
  assert.ok(found.length >= 10 && found.length <= 20, String(found.length))
  assert.ok(found.includes(0) && found.includes(99))
})

bounded('keeps no more than twice its weight, however few entries that are', () => {
  const map = new BoundedMap<number, string>(1000, 100)
  for (const key of keys(50)) map.set(key, 'x', 30)
  assert.ok(kept(map, 50).length <= 7)
  map.set(50, 'heavy', 1000)
  assert.is(map.get(50), 'heavy')
  for (const key of keys(4)) map.set(key, 'x', 30)
  assert.is(kept(map, 51).includes(50), false)
})

bounded('counts the weight of a replaced, deleted or cleared entry no longer', () => {
  const map = new BoundedMap<number, string>(1000, 100)
  for (const _ of keys(50)) map.set(0, 'x', 60)
  map.set(1, 'x', 30)
  assert.equal(kept(map, 2), [0, 1])
  for (const key of keys(50)) {
    map.set(key, 'x', 60)
    map.delete(key)
  }
  assert.equal(kept(map, 50), [])
  map.set(1, 'x', 60)
  map.clear()
  map.set(2, 'x', 60)
  assert.equal(kept(map, 50), [2])
})

bounded('counts the weight of an entry that is used again', () => {
  const map = new BoundedMap<number, string>(1000, 100)
  for (const key of keys(20)) {
    map.set(key, 'x', 30)
    for (const used of keys(3)) map.get(used)
  }
  const found = kept(map, 20)
  assert.ok(found.length <= 7)
  assert.equal(found.slice(0, 3), [0, 1, 2])
})
bounded.run()
