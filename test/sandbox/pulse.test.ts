import * as assert from 'uvu/assert'
import type { ProcessorUse } from '../../src/sandbox/processorUse.ts'
import { Pulse } from '../../src/sandbox/pulse.ts'
import { suite } from '../support/suite.ts'

const OPTIONS = { heartbeatMs: 5000, pingMs: 1000, tickMs: 50 }
const BUSY = { runs: 1, idleSince: 0, listening: true }
const TICK_MS = 50

/**
 * Ticks of a child that answers no ping. Returns the time until it is unresponsive; null if that takes longer than
 * `untilMs`. `useAt`: its use of processors after a time.
 */
const silentFor = (useAt: (ms: number) => ProcessorUse | null, untilMs: number): number | null => {
  let now = 0
  const pulse = new Pulse({ send() {}, freeze() {}, thaw() {}, processorUse: () => useAt(now) }, OPTIONS)
  for (now = 1000; now <= untilMs; now += TICK_MS) {
    if (pulse.tick(now, TICK_MS, BUSY) === 'unresponsive') return now - 1000
    assert.is(pulse.isQuiet, now - 1000 >= 200) // it gets no run, and the times of its runs wait
  }
  return null
}
const ready = (share: number) => (ms: number) => ({ usedMs: ms * share, isReady: true })

const pulse = suite('the pulse of a child that answers no ping')

pulse('stops after the heartbeat if the child spins', () => {
  const silent = silentFor(ready(1), 60_000) ?? 0
  assert.ok(silent >= 5000 && silent <= 5200, `${silent} ms`)
})
pulse('stops if the child waits for something else than a processor', () => {
  assert.ok((silentFor(() => ({ usedMs: 100, isReady: false }), 60_000) ?? Infinity) <= 10_100)
})
pulse('continues while the child waits for a processor, however busy the machine is', () => {
  assert.is(silentFor(ready(0.1), 45_000), null)
})
pulse('stops at last if the child never gets a processor', () => {
  const silent = silentFor(ready(0), 200_000) ?? 0
  assert.ok(silent >= 45_000 && silent <= 55_000, `${silent} ms`)
})
pulse('stops if the use of processors is not known', () => {
  assert.ok((silentFor(() => null, 60_000) ?? Infinity) <= 10_100)
})
pulse.run()
