import { setImmediate as nextTurn } from 'node:timers/promises'
import * as assert from 'uvu/assert'
import { FairTurns } from '../../src/loops/fairTurns.ts'
import { suite } from '../support/suite.ts'

const fair = suite('the turns of organizations in the event loop')

fair('cost nothing for an organization that is active alone', () => {
  const turns = new FairTurns()
  for (let n = 0; n < 1000; n++) assert.is(turns.take('a'), null)
})

fair('are shared while several are active: a flood begins two operations in a turn', async () => {
  const turns = new FairTurns()
  void turns.take('quiet')
  let begun = 0
  for (let n = 0; n < 100; n++) {
    const turn = turns.take('flood')
    if (turn) void turn.then(() => begun++)
    else begun++
  }
  assert.is(begun, 2)
  for (let n = 2; n < 6; n++) {
    await nextTurn()
    assert.ok(begun <= 2 * n, `${begun} operations begun in ${n} turns`)
  }
})

fair('of a quiet organization come at once, however many operations of another wait', async () => {
  const turns = new FairTurns()
  void turns.take('quiet')
  for (let n = 0; n < 100; n++) void turns.take('flood')
  assert.is(turns.take('quiet'), null)
  await nextTurn()
  assert.is(turns.take('quiet'), null)
})

fair('keep the order of the operations of an organization, and begin all of them', async () => {
  const turns = new FairTurns()
  void turns.take('quiet')
  const order: number[] = []
  await Promise.all(
    Array.from({ length: 50 }, async (_, n) => {
      const turn = turns.take('flood')
      if (turn) await turn
      order.push(n)
    }),
  )
  assert.equal(
    order,
    Array.from({ length: 50 }, (_, n) => n),
  )
})

fair.run()
