import * as assert from 'uvu/assert'
import { isAppError } from '../../src/errors.ts'
import { Freshness } from '../../src/projections/freshness.ts'
import { suite } from '../support/suite.ts'

const MINUTE = 60_000

/** A projector whose clocks stand still between its steps. */
const given = () => {
  let now = { monotonic: 0, wall: 1_000_000 }
  const freshness = new Freshness(now, () => now)
  let looks = 0
  return {
    freshness,
    get looks() {
      return looks
    },
    pass: (minutes: number) => {
      now = { monotonic: now.monotonic + minutes * MINUTE, wall: now.wall + minutes * MINUTE }
    },
    suspend: (minutes: number) => {
      now = { ...now, wall: now.wall + minutes * MINUTE }
    },
    /** A write after a position, while the documents contain the events up to a checkpoint. */
    write: (position: string, checkpoint: string): Promise<'sent' | 'refused'> =>
      freshness
        .look(position, async () => {
          looks++
          return checkpoint
        })
        .then(
          () => 'sent' as const,
          (error: unknown) => {
            assert.ok(isAppError(error, 'unavailable'), String(error))
            return 'refused' as const
          },
        ),
  }
}

const rule = suite('the age of writes to a server')

rule('a projector without another one writes at any time', async () => {
  const projector = given()
  assert.is(await projector.write('1', '1'), 'sent')
  projector.pass(120)
  assert.is(await projector.write('1', '1'), 'sent')
})

rule('the checkpoint is read once a minute', async () => {
  const projector = given()
  for (const position of ['1', '2', '3']) await projector.write(position, position)
  assert.is(projector.looks, 0)
  projector.pass(1)
  for (const position of ['4', '5', '6']) await projector.write(position, position)
  assert.is(projector.looks, 1)
})

for (const how of ['pass', 'suspend'] as const)
  rule(`one that was stopped while another one continued is refused: ${how}`, async () => {
    const projector = given()
    projector[how](9)
    assert.is(await projector.write('1', '5'), 'sent')
    projector[how](1)
    assert.is(await projector.write('1', '5'), 'refused')
  })

rule('one that was stopped within a write sends no more of it', () => {
  const projector = given()
  projector.freshness.refuseLate()
  projector.suspend(10)
  assert.throws(() => projector.freshness.refuseLate(), /Another node/)
})

rule('one that stays a little behind another one continues', async () => {
  const projector = given()
  for (let minute = 1; minute < 60; minute++) {
    projector.pass(1)
    assert.is(await projector.write(String(1000 + minute), String(1001 + minute)), 'sent', String(minute))
  }
})

rule('one that stays far behind another one is refused', async () => {
  const projector = given()
  const results: string[] = []
  for (let minute = 1; minute <= 10; minute++) {
    projector.pass(1)
    results.push(await projector.write(String(1000 + minute), '2000'))
  }
  assert.equal(results, [...Array.from({ length: 9 }, () => 'sent'), 'refused'])
})

rule.run()
