import { writeFileSync } from 'node:fs'
import * as assert from 'uvu/assert'
import { spawnEmbedded } from '../support/backedUp.ts'
import { deploy, publish, type Run } from '../support/build.ts'
import { clockAt } from '../support/clockAt.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const CODE = `
import { fn } from 'svc'
let attempts = 0
export const second = fn({ 'on-event': 'begun', retry: { attempts: 1, delay: 5000 } }, () => {
  if (attempts++ === 0) throw new Error('the first attempt')
  return 'retried'
})
`
const HOUR_MS = 3_600_000

const clock = suite('a clock that is set back', { timeoutMs: 60_000 })

clock('does not stop the retries of a node that was ahead', async () => {
  const shifted = clockAt(Date.now() + 2 * HOUR_MS, false)
  const node = await spawnEmbedded(tempDir(), shifted)
  try {
    await deploy(node.api, 'retries', { 'retries.js': CODE })
    await publish(node.api, 'begun', {})
    const runs = async () => (await node.api.page<Run>('/runs?type=event')).data
    await until(async () => (await runs()).some(({ status }) => status === 'pending_retry'))
    writeFileSync(String(shifted['SVC_TEST_CLOCK']), '0')
    node.process.kill('SIGUSR2')
    const retried = await until(async () => (await runs()).find(({ status }) => status === 'succeeded'))
    assert.is(retried.result, 'retried')
  } finally {
    await node.stop()
  }
})

clock.run()
