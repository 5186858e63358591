import * as assert from 'uvu/assert'
import { suite } from './suite.ts'
import { together } from './together.ts'

const overlapping = suite('tests that wait together')

overlapping('start with the first one, and each reports its own outcome', async () => {
  const registered = new Map<string, () => Promise<void>>()
  const test = together((name, run) => void registered.set(name, run))
  const order: string[] = []
  const gate = Promise.withResolvers<void>()
  test('waits', async () => {
    order.push('waits')
    await gate.promise
  })
  test('fails', async () => {
    order.push('fails')
    gate.resolve()
    throw new Error('its own failure')
  })
  await registered.get('waits')?.()
  assert.equal(order, ['waits', 'fails'])
  const failure = await registered
    .get('fails')?.()
    .catch((error: unknown) => error)
  assert.is((failure as Error).message, 'its own failure')
  assert.equal(order, ['waits', 'fails'], 'no test runs twice')
})

overlapping.run()
