import * as assert from 'uvu/assert'
import { AddressNames } from '../../src/egress/addressNames.ts'
import { suite } from '../support/suite.ts'

const names = suite('the names of an address')

names('are all for which it was received, the last one first', () => {
  const known = new AddressNames()
  assert.equal(known.of('1.1.1.1'), [])
  for (const name of ['a.example', 'b.example', 'a.example']) known.add('1.1.1.1', name)
  known.add('1.1.1.2', 'c.example')
  assert.equal(known.of('1.1.1.1'), ['a.example', 'b.example'])
  assert.equal(known.of('1.1.1.2'), ['c.example'])
})

names('are at most eight, of at most 512 addresses', () => {
  const known = new AddressNames()
  const texts = Array.from({ length: 20 }, (_, n) => `n${n}.example`)
  for (const name of texts) known.add('1.1.1.1', name)
  assert.equal(known.of('1.1.1.1'), texts.slice(-8).toReversed())
  for (let n = 0; n < 512; n++) known.add(`10.0.${n >> 8}.${n & 255}`, 'b.example')
  assert.equal(known.of('1.1.1.1'), [])
  assert.equal(known.of('10.0.1.255'), ['b.example'])
})

names.run()
