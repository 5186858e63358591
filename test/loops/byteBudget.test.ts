import assert from 'node:assert/strict'
import { ByteBudget } from '../../src/loops/byteBudget.ts'
import { isAppError } from '../../src/errors.ts'
import { suite } from '../support/suite.ts'

const test = suite('A budget of bytes')

const budgetOf = (totalBytes: number, waitMs = 60_000) =>
  new ByteBudget({ name: 'tests', totalBytes, waitMs })

test('bytes are taken up to the total, and an owner gets at most half', async () => {
  const budget = budgetOf(100)
  assert.ok(budget.tryTake('a', 30))
  assert.ok(budget.tryTake('a', 20))
  assert.equal(budget.tryTake('a', 1), undefined)
  assert.ok(budget.tryTake('b', 50))
  assert.equal(budget.tryTake('c', 1), undefined)
  assert.equal(budget.held, 100)
})

test('a request for more than half takes half, so that it can be served at all', async () => {
  const budget = budgetOf(100)
  const giveBack = await budget.take('a', 1000)
  assert.equal(budget.held, 50)
  giveBack()
  giveBack()
  assert.equal(budget.held, 0)
})

test('owners that wait take turns', async () => {
  const budget = budgetOf(100)
  const first = [budget.tryTake('x', 50), budget.tryTake('y', 50)]
  const served: string[] = []
  const waits = ['a', 'a', 'a', 'b'].map(async (owner) => {
    const giveBack = await budget.take(owner, 50)
    served.push(owner)
    giveBack()
  })
  for (const giveBack of first) giveBack?.()
  await Promise.all(waits)
  assert.ok(served.indexOf('b') < 2, `served in the order ${served.join(' ')}`)
  assert.equal(budget.held, 0)
})

test('a large request is not overtaken by small ones of others', async () => {
  const budget = budgetOf(100)
  const held = [budget.tryTake('x', 40), budget.tryTake('y', 40)]
  const large = budget.take('a', 50)
  assert.equal(budget.tryTake('b', 10), undefined)
  held[0]?.()
  await large
  assert.equal(budget.held, 90)
})

test('an owner at its half does not hold up the others', async () => {
  const budget = budgetOf(100)
  budget.tryTake('a', 50)
  void budget.take('a', 50).catch(() => {})
  const giveBack = await budget.take('b', 50)
  assert.equal(budget.held, 100)
  giveBack()
})

test('a wait that is too long is refused as unavailable, with a time to wait', async () => {
  const budget = budgetOf(100, 1)
  budget.tryTake('a', 50)
  await assert.rejects(budget.take('a', 1), (error) => {
    assert.ok(isAppError(error, 'unavailable'))
    assert.equal(typeof error.data['retryAfter'], 'number')
    return true
  })
  assert.ok(budget.tryTake('b', 50), 'a refused request leaves nothing behind')
})

test('a client that leaves gives up its place', async () => {
  const budget = budgetOf(100)
  const held = budget.tryTake('a', 50)
  const left = new AbortController()
  const waiting = budget.take('a', 50, left.signal)
  const next = budget.take('a', 10)
  left.abort()
  await assert.rejects(waiting)
  held?.()
  await next
  assert.equal(budget.held, 10)
})

test.run()
