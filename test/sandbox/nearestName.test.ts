import * as assert from 'uvu/assert'
import { nearest } from '../../src/sandbox/nearestName.ts'
import { suite } from '../support/suite.ts'

const names = suite('the name that was probably meant')

names('differs in at most two characters, and in fewer if it is short', () => {
  const known = ['orders/place', 'orders/pay', 'main/cancelled', 'abc', 'abcdefg']
  assert.is(nearest('orders/palce', known), 'orders/place')
  assert.is(nearest('orders/plac', known), 'orders/place')
  assert.is(nearest('xorders/placex', known), 'orders/place')
  assert.is(nearest('ordesr/plcae', known), 'orders/place')
  assert.is(nearest('orders/pax', known), 'orders/pay')
  assert.is(nearest('MAIN/Cancelled', known), 'main/cancelled')
  assert.is(nearest('cdefg', known), undefined)
  assert.is(nearest('ab', known), undefined)
  assert.is(nearest('axy', known), undefined)
  assert.is(nearest('main/cance', known), undefined)
})

names('is the one with the fewest differences', () =>
  assert.is(nearest('orders/paid', ['orders/pxxd', 'orders/pail', 'orders/paad']), 'orders/pail'),
)

names('is found in the same time, however long and alike the names are', () => {
  const alike = Array.from({ length: 2000 }, (_, n) => `main/${'a'.repeat(240)}${String(n).padStart(5, '0')}`)
  const search = () => nearest(`x/main${'a'.repeat(242)}xx`, alike)
  search() // the code is optimized
  const before = process.cpuUsage()
  for (let n = 0; n < 20; n++) assert.is(search(), undefined)
  const { user } = process.cpuUsage(before)
  assert.ok(user < 0.5e6, `20 searches took ${user} µs of the processor`)
})

names.run()
