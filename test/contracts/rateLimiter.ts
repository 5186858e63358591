import * as assert from 'uvu/assert'
import { clock } from '../../src/clock.ts'
import { newId } from '../../src/ids.ts'
import type { RateLimiter, RateVerdict } from '../../src/ports/rateLimiter.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

export interface OpenRateLimiter {
  readonly limiter: RateLimiter
  close(): Promise<void>
}

/** One request per hundred seconds, so that no new one is allowed during a test. */
const slow = (burst: number) => ({ perSecond: 0.01, burst })
const allowedIn = (verdicts: RateVerdict[]): number => verdicts.filter(({ allowed }) => allowed).length

/** The rules of `ports/rateLimiter.ts` for every adapter. */
export const rateLimiterContract = (name: string, open: () => Promise<OpenRateLimiter>): void => {
  const limits = suite<OpenRateLimiter>(`${name} rate limiter`)
  limits.before(async (context) => Object.assign(context, await open()))
  limits.after(({ close }) => close())

  limits('allows a burst and no more', async ({ limiter }) => {
    const key = newId()
    const verdicts = await Promise.all(Array.from({ length: 25 }, () => limiter.take(key, slow(20))))
    assert.is(allowedIn(verdicts), 20)
  })

  limits('counts the burst exactly at rates that do not divide a second', async ({ limiter }) => {
    for (const perSecond of [3, 6, 7, 0.3]) {
      const key = newId()
      // A hundred times slower, so that no new one is allowed meanwhile.
      const verdicts = await Promise.all(
        Array.from({ length: 60 }, () => limiter.take(key, { perSecond: perSecond / 100, burst: 50 })),
      )
      assert.is(allowedIn(verdicts), 50, `${perSecond} per second`)
    }
  })

  limits('returns how many requests are left', async ({ limiter }) => {
    const key = newId()
    const left = []
    for (let i = 0; i < 4; i++) left.push((await limiter.take(key, slow(3))).remaining)
    assert.equal(left, [2, 1, 0, 0])
  })

  limits('returns when the next request is allowed, and when all are', async ({ limiter }) => {
    const key = newId()
    const first = await limiter.take(key, slow(2))
    assert.is(first.retryAfterMs, 0)
    assert.ok(first.resetMs > 95_000 && first.resetMs <= 100_000, `${first.resetMs}`)
    await limiter.take(key, slow(2))
    const refused = await limiter.take(key, slow(2))
    assert.not.ok(refused.allowed)
    assert.ok(refused.retryAfterMs > 95_000 && refused.retryAfterMs <= 100_000, `${refused.retryAfterMs}`)
    assert.ok(refused.resetMs > 195_000 && refused.resetMs <= 200_000, `${refused.resetMs}`)
  })

  limits('a refused request does not count', async ({ limiter }) => {
    const key = newId()
    await limiter.take(key, slow(1))
    const refusals = []
    for (let i = 0; i < 10; i++) refusals.push(await limiter.take(key, slow(1)))
    assert.is(allowedIn(refusals), 0)
    assert.ok((refusals.at(-1)?.retryAfterMs ?? Infinity) <= 100_000)
  })

  limits('allows again as time passes, and as many as it brings', async ({ limiter }) => {
    const key = newId()
    const limit = { perSecond: 10, burst: 1 }
    const began = clock.monotonic()
    assert.ok((await limiter.take(key, limit)).allowed)
    await until(async () => (await limiter.take(key, limit)).allowed)
    const tookMs = clock.monotonic() - began
    assert.ok(tookMs >= 95, `${tookMs} ms`)
    for (let allowed = 3; (await limiter.take(key, limit)).allowed; allowed++) {
      const most = 1 + (clock.monotonic() - began + 5) / 100
      assert.ok(allowed <= most, `${allowed} were allowed, ${most} at most`)
    }
  })

  limits('keys do not touch each other', async ({ limiter }) => {
    const [one, other] = [newId(), newId()]
    await limiter.take(one, slow(1))
    assert.ok((await limiter.take(other, slow(1))).allowed)
    assert.not.ok((await limiter.take(one, slow(1))).allowed)
  })

  limits('a changed limit on a key applies from the next take on', async ({ limiter }) => {
    const key = newId()
    await limiter.take(key, slow(1))
    assert.not.ok((await limiter.take(key, slow(1))).allowed)
    assert.ok((await limiter.take(key, slow(5))).allowed)
  })

  limits.run()
}
