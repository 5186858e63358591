import * as assert from 'uvu/assert'
import { openRateLimiter } from '../../src/adapters/embedded/rateLimiter.ts'
import { rateLimiterContract } from '../contracts/rateLimiter.ts'
import { suite } from '../support/suite.ts'

rateLimiterContract('in-process', async () => {
  const limiter = openRateLimiter()
  return { limiter, close: () => limiter.close() }
})

const memory = suite('the in-process rate limiter')

memory('keys are counted exactly while thousands of others are created and removed', async () => {
  const limiter = openRateLimiter()
  const limit = { perSecond: 0.01, burst: 2 }
  await limiter.take('kept', limit)
  for (let i = 0; i < 5000; i++) await limiter.take(`passing-${i}`, { perSecond: 1e6, burst: 1 })
  await limiter.take('kept', limit)
  assert.not.ok((await limiter.take('kept', limit)).allowed)
})

memory.run()
