import * as assert from 'uvu/assert'
import { toolNameBeside, toolNameOf } from '../../src/events/toolName.ts'
import { suite } from '../support/suite.ts'

const names = suite('the name of a tool')

const VALID = /^[A-Za-z0-9_-]{1,64}$/

names('is its service and its function', () => {
  assert.is(toolNameOf('shop', 'orders.handlers', 'refund'), 'shop_orders_handlers_refund')
})

names('is valid for clients, whatever the function is called', () => {
  for (const [service, ns, name] of [
    ['a.b', 'größe', '$x'],
    ['s'.repeat(128), 'n'.repeat(512), 'v'.repeat(128)],
  ] as const)
    assert.match(toolNameOf(service, ns, name), VALID)
})

names('differs for long functions that begin alike', () => {
  const long = 'n'.repeat(80)
  assert.is.not(toolNameOf('s', long, 'a'), toolNameOf('s', long, 'b'))
})

names('is valid and differs beside a taken name', () => {
  const beside = toolNameBeside('n'.repeat(64), 'p1')
  assert.match(beside, VALID)
  assert.is.not(beside, toolNameBeside('n'.repeat(64), 'p2'))
})

names.run()
