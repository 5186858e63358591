import * as assert from 'uvu/assert'
import {
  hasParameters,
  mistakeInParameters,
  parametersIn,
  shapeOf,
  withParameters,
} from '../../src/events/webhookPath.ts'
import { suite } from '../support/suite.ts'

const path = suite('the path of a webhook')

path('with parameters matches one segment for each of them', () => {
  const orders = '/shops/:shop/orders/:id'
  assert.ok(hasParameters(orders))
  assert.equal(parametersIn(orders, '/shops/a b/orders/7'), { shop: 'a b', id: '7' })
  for (const other of ['/shops/a/orders', '/shops/a/orders/7/8', '/shops//orders/7', '/shops/a/items/7', '/'])
    assert.is(parametersIn(orders, other), null, other)
})

path('without parameters matches itself', () => {
  assert.not.ok(hasParameters('/a:b/c'))
  assert.equal(parametersIn('/a:b/c', '/a:b/c'), {})
  assert.is(parametersIn('/a:b/c', '/a:b/d'), null)
})

path('has the names of objects as ordinary parameters', () => {
  for (const name of ['constructor', '__proto__'])
    assert.equal(Object.entries(parametersIn(`/:${name}`, '/x') ?? {}), [[name, 'x']])
  assert.equal(parametersIn('/:a', '/__proto__'), { a: '__proto__' })
})

path('has a shape without the names', () => {
  assert.is(shapeOf('/shops/:shop/orders/:id'), '/shops/:/orders/:')
  assert.is(shapeOf('/paid'), '/paid')
})

path('becomes a part of a URL', () => {
  assert.is(withParameters('/files/:name', { name: 'a b?#/ü' }), '/files/a%20b%3F%23%2F%C3%BC')
})

for (const [given, mistake] of [
  ['/a/:1', 'to have parameters such as ":id", with letters, digits and "_"'],
  ['/a/:', 'to have parameters such as ":id", with letters, digits and "_"'],
  ['/a/:id?', 'to have parameters such as ":id", with letters, digits and "_"'],
  ['/:id/:id', 'to name each parameter once'],
  ['/files/*', 'to have no wildcards; use a parameter such as ":id" for a segment'],
  [`/${Array.from({ length: 9 }, (_, n) => `:p${n}`).join('/')}`, 'to have at most 8 parameters'],
  ['/a:b/:id_2', undefined],
] as const) {
  path(`is ${mistake === undefined ? 'accepted' : 'refused'}: ${given}`, () =>
    assert.is(mistakeInParameters(given), mistake),
  )
}

path.run()
