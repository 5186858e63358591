import * as assert from 'uvu/assert'
import { AddressLimit } from '../../src/api/http/addressLimit.ts'
import { suite } from '../support/suite.ts'

const limit = suite('the limit of an address')

limit('counts the addresses of one IPv6 network together, because one client has all of them', () => {
  const open = new AddressLimit(2)
  assert.ok(open.take('2001:db8::1'))
  assert.ok(open.take('2001:db8:0:0:ffff::2'))
  assert.not(open.take('2001:db8::3'))
  assert.ok(open.take('2001:db8:0:1::1'))
  open.giveBack('2001:db8::4')
  assert.ok(open.take('2001:db8::3'))
})

limit('counts IPv4 addresses apart', () => {
  const open = new AddressLimit(1)
  assert.ok(open.take('192.0.2.1'))
  assert.ok(open.take('192.0.2.2'))
  assert.not(open.take('192.0.2.1'))
})

limit.run()
