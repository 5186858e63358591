import * as assert from 'uvu/assert'
import { suite } from './suite.ts'
import { until } from './until.ts'

const waits = suite('until')

waits('resolves with the first truthy value', async () => {
  let asked = 0
  assert.is(await until(() => (++asked === 3 ? 'three' : undefined)), 'three')
})

waits('treats a condition that throws as not met yet', async () => {
  let asked = 0
  const met = await until(async () => {
    if (++asked < 3) throw new Error('not there')
    return asked
  })
  assert.is(met, 3)
})

waits('rejects with the condition and its last error', async () => {
  const failing = () => {
    throw new Error('the reason')
  }
  try {
    await until(failing, { timeoutMs: 20 })
  } catch (error) {
    assert.instance(error, Error)
    assert.match((error as Error).message, 'the reason')
    assert.is(((error as Error).cause as Error).message, 'the reason')
    return
  }
  assert.unreachable('expected a rejection')
})

waits.run()
