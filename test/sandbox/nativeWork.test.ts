import { pbkdf2 } from 'node:crypto'
import { promisify } from 'node:util'
import * as assert from 'uvu/assert'
import { NativeWork } from '../../src/sandbox/child/nativeWork.ts'
import { Run } from '../../src/sandbox/child/run.ts'
import { activeRuns } from '../../src/sdk/activeRun.ts'
import { suite } from '../support/suite.ts'

const info = { run_id: 'r' } as Run['info']
const openRun = () => new Run({ id: 1, run: info }, { send: () => {}, sendJson: () => {} }, 0, () => {})

/** A run that ended two periods ago. */
const leftover = (): Run => {
  const run = openRun()
  run.succeed(null)
  Run.period += 2
  return run
}

const derive = (run: Run) => activeRuns.run(run, () => promisify(pbkdf2)('a', 'b', 10_000, 32, 'sha256'))

const work = new NativeWork()
work.watch()

const native = suite('native work of ended runs')
native.before.each(() => {
  work.take()
  work.take()
})

native('counts if it is done in two periods in a row, and no more afterwards', async () => {
  const run = leftover()
  await derive(run)
  assert.is(work.take(), 0)
  await derive(run)
  assert.ok(work.take() > 0)
  assert.is(work.take(), 0)
})

native('counts before it has ended', async () => {
  const ends = derive(leftover())
  work.take()
  assert.ok(work.take() > 0)
  await ends
})

native('of a run in progress does not count', async () => {
  for (const run of [openRun(), openRun()]) {
    await derive(run)
    assert.is(work.take(), 0)
  }
})

native.run()
