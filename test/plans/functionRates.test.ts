import * as assert from 'uvu/assert'
import { clock } from '../../src/clock.ts'
import { AppError } from '../../src/errors.ts'
import type { Plan } from '../../src/events/org.ts'
import { FunctionRates, type Turns } from '../../src/plans/functionRates.ts'
import type { RateLimiter } from '../../src/ports/rateLimiter.ts'
import { openRateLimiter } from '../../src/adapters/embedded/rateLimiter.ts'
import { suite } from '../support/suite.ts'
import { withoutTime } from '../support/withoutTime.ts'

const signal = new AbortController().signal

/** The turns of a run in an environment; its organization must have a rate. */
const runOf = (rates: FunctionRates, env_id = 'env', until: AbortSignal = signal): Turns => {
  const turns = rates.turnsOf(env_id, until)
  assert.ok(turns)
  return turns
}

const ratesOf = (plan: Plan, limiter: RateLimiter = openRateLimiter()) =>
  new FunctionRates({
    limiter,
    directory: {
      env: (env_id) => ({ env_id, name: 'dev', org_id: `org of ${env_id}`, org_slug: 'o', plan }),
    },
  })

const turns = suite('the rate of functions')

turns('is no rate, and costs nothing, on plans without a limit', () => {
  assert.is(ratesOf('scale').turnsOf('env', signal), null)
  assert.is(ratesOf('self_host').turnsOf('env', signal), null)
})

turns('makes host calls wait for their turn instead of refusing them', async () => {
  const run = runOf(ratesOf('free'))
  const began = clock.monotonic()
  await Promise.all(Array.from({ length: 7 }, () => run.take('start')))
  assert.ok(clock.monotonic() - began >= 395, 'the two calls beyond the burst of five waited 200 ms each')
})

turns('is shared by the runs of an organization, and by no other organization', async () => {
  const rates = ratesOf('free')
  const [first, second, other] = [runOf(rates, 'a'), runOf(rates, 'a'), runOf(rates, 'b')]
  const order: string[] = []
  let waited: Promise<unknown> | undefined
  await withoutTime(async () => {
    await Promise.all(Array.from({ length: 5 }, () => first.take('start')))
    waited = second.take('start').then(() => order.push('the same organization'))
    await other.take('start').then(() => order.push('another organization'))
  })
  await waited
  assert.equal(order, ['another organization', 'the same organization'])
})

turns('allows 100 emits per second on the free plan', async () => {
  const taken: number[] = []
  const limiter: RateLimiter = {
    async take(_, { perSecond }) {
      taken.push(perSecond)
      return { allowed: true, remaining: 1, retryAfterMs: 0, resetMs: 0 }
    },
    close: () => Promise.resolve(),
  }
  const run = runOf(ratesOf('free', limiter))
  await run.take('start')
  await run.take('emit')
  assert.equal(taken, [5, 100])
})

turns('keeps the calls of a run in order, emits included', async () => {
  const run = runOf(ratesOf('free'))
  const order: number[] = []
  await Promise.all(
    Array.from({ length: 7 }, (_, i) => run.take(i % 2 === 0 ? 'start' : 'emit').then(() => order.push(i))),
  )
  assert.equal(order, [0, 1, 2, 3, 4, 5, 6])
})

turns('refuses a call that would wait for more than 30 s', async () => {
  const limiter: RateLimiter = {
    take: () => Promise.resolve({ allowed: false, remaining: 0, retryAfterMs: 31_000, resetMs: 31_000 }),
    close: () => Promise.resolve(),
  }
  const refusal = await runOf(ratesOf('free', limiter))
    .take('start')
    .catch((error: unknown) => error)
  assert.ok(refusal instanceof AppError)
  assert.is(refusal.code, 'rate_limit_exceeded')
})

turns('is not waited for by a run that was cancelled', async () => {
  const cancel = new AbortController()
  const run = runOf(ratesOf('free'), 'env', cancel.signal)
  await withoutTime(async () => {
    await Promise.all(Array.from({ length: 5 }, () => run.take('start')))
    const waiting = run.take('start').catch((error: unknown) => error)
    cancel.abort()
    assert.instance(await waiting, AppError)
  })
})

turns.run()
