import * as assert from 'uvu/assert'
import { clock } from '../src/clock.ts'
import { derivedId, derivedIdBeside, isId, newId } from '../src/ids.ts'
import { suite } from './support/suite.ts'

const ids = suite('ids')
ids('that are new are UUIDs of version 7, each another one, in the order of time', () => {
  const before = clock.now()
  const made = Array.from({ length: 20_000 }, newId)
  assert.is(new Set(made).size, made.length)
  for (const id of made)
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  const times = made.map((id) => Number.parseInt(id.replace('-', '').slice(0, 12), 16))
  assert.equal(
    times,
    times.toSorted((a, b) => a - b),
  )
  assert.ok(times.every((time) => time >= before && time <= clock.now()))
})
ids('that are derived are the same for the same parts, on every version of this code', () => {
  assert.is(derivedId('schedule', 'p', 7), derivedId('schedule', 'p', 7))
  assert.is(derivedId('org', 'local'), '38e1befc-96b7-5032-b37e-27ac248a1f9e')
  assert.match(derivedId('x'), /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
})
ids('that are derived are others for other parts', () => {
  const made = [
    ['a'],
    ['b'],
    ['a', 'b'],
    ['b', 'a'],
    ['ab'],
    ['a', ''],
    ['', 'a'],
    ['a', 1],
    ['a', 11],
  ] as const
  assert.is(new Set(made.map((parts) => derivedId(...parts))).size, made.length)
})
ids('that are derived beside another one sort beside it', () => {
  const base = newId()
  const beside = derivedIdBeside(base, 'p', 'ns', 'var')
  assert.is(beside, derivedIdBeside(base, 'p', 'ns', 'var'))
  assert.is.not(beside, derivedIdBeside(base, 'p', 'ns', 'other'))
  assert.is.not(beside, derivedIdBeside(newId(), 'p', 'ns', 'var'))
  assert.is(beside.slice(0, 13), base.slice(0, 13))
  assert.match(beside, /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  for (let i = 0; i < 1000; i++) assert.ok(isId(derivedIdBeside(newId(), i)))
})
ids('are distinguished from other texts', () => {
  assert.ok(isId(newId()) && isId(derivedId('x')))
  for (const text of [
    '',
    'x',
    newId().toUpperCase(),
    `${newId()}0`,
    newId().slice(1),
    `${newId()}\n`,
    `{${newId()}}`,
  ])
    assert.not.ok(isId(text), text)
})
ids.run()
