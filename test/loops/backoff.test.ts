import * as assert from 'uvu/assert'
import { clock } from '../../src/clock.ts'
import { Backoff, jittered, pauseAfter } from '../../src/loops/backoff.ts'
import { suite } from '../support/suite.ts'

const pauses = { firstMs: 50, longestMs: 2000 }

const backoff = suite('a backoff')
backoff('doubles its pause up to the longest', () => {
  const all = [0, 1, 2, 3, 4, 5, 6, 1000].map((failures) => pauseAfter(failures, pauses))
  assert.equal(all, [50, 100, 200, 400, 800, 1600, 2000, 2000])
})
backoff('grows by another factor where one is given', () => {
  assert.equal(
    [0, 1, 2, 3].map((failures) => pauseAfter(failures, { firstMs: 100, longestMs: 1600, factor: 4 })),
    [100, 400, 1600, 1600],
  )
})
backoff('spreads a pause over half to one and a half times its length', () => {
  const spread = Array.from({ length: 500 }, () => jittered(100))
  assert.ok(spread.every((ms) => ms >= 50 && ms < 150))
  assert.ok(new Set(spread).size > 1)
})
backoff('begins again with the first pause after a success', () => {
  const tries = new Backoff(pauses)
  for (let i = 0; i < 8; i++) tries.next()
  assert.ok(tries.next() >= 1000)
  tries.reset()
  assert.ok(tries.next() < 75)
})
backoff('ends its pause when the signal aborts, and does not reject', async () => {
  const stopping = new AbortController()
  const hour = new Backoff({ firstMs: 3_600_000, longestMs: 3_600_000 })
  const waiting = hour.pause({ signal: stopping.signal })
  stopping.abort()
  await waiting
  await hour.pause({ signal: stopping.signal })
})
backoff('waits for its pause', async () => {
  const began = clock.monotonic()
  await new Backoff({ firstMs: 20, longestMs: 20 }).pause()
  assert.ok(clock.monotonic() - began >= 9)
})
backoff.run()
