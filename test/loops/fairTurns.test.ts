import { setImmediate as nextTurn } from 'node:timers/promises'
import * as assert from 'uvu/assert'
import { FairTurns } from '../../src/loops/fairTurns.ts'
import { suite } from '../support/suite.ts'
import { withoutTime } from '../support/withoutTime.ts'

const fair = suite('the turns of organizations in the event loop')

/** Begins operations of an organization. Returns the number of those that have begun. */
const begin = (turns: FairTurns, org_id: string, operations: number): (() => number) => {
  let begun = 0
  for (let n = 0; n < operations; n++) {
    const turn = turns.take(org_id)
    if (turn) void turn.then(() => begun++)
    else begun++
  }
  return () => begun
}

fair(
  'are short for an organization that is active alone: it begins twenty operations in a turn',
  async () => {
    const turns = new FairTurns()
    const begun = begin(turns, 'a', 100)
    assert.is(begun(), 20)
    for (let n = 2; begun() < 100; n++) {
      const before = begun()
      await nextTurn()
      assert.ok(begun() <= 20 * (n - 1), `${begun()} operations begun in ${n} turns`)
      assert.ok(begun() > before || n < 4, 'no operation begun in a turn')
    }
  },
)

fair('begin one operation of an organization while connections arrive', () =>
  withoutTime(async () => {
    const turns = new FairTurns()
    turns.accepted()
    const begun = begin(turns, 'a', 100)
    assert.is(begun(), 1)
    for (let n = 2; n < 10; n++) {
      turns.accepted()
      await nextTurn()
      assert.ok(begun() <= n, `${begun()} operations begun in ${n} turns`)
    }
  }),
)

fair('are as before once a turn has accepted no connection', async () => {
  const turns = new FairTurns()
  turns.accepted()
  const begun = begin(turns, 'a', 24)
  for (let n = 0; n < 4; n++) await nextTurn()
  assert.is(begun(), 24)
})

fair('go on from time to time while connections never end to arrive', async () => {
  const turns = new FairTurns()
  turns.accepted()
  let begun = 0
  let waiting = 0
  for (let most = 0; most < 20;) {
    for (; waiting < 100; waiting++) {
      const turn = turns.take('a') ?? Promise.resolve()
      void turn.then(() => {
        begun++
        waiting--
      })
    }
    const before = begun
    turns.accepted()
    await nextTurn()
    most = Math.max(most, begun - before)
  }
})

fair('are shared while several are active: a flood begins two operations in a turn', () =>
  withoutTime(async () => {
    const turns = new FairTurns()
    void turns.take('quiet')
    const begun = begin(turns, 'flood', 100)
    assert.is(begun(), 2)
    for (let n = 2; n < 6; n++) {
      await nextTurn()
      assert.ok(begun() <= 2 * n, `${begun()} operations begun in ${n} turns`)
    }
  }),
)

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

/** The operations that begin in each of the next turns, after one in which as many as may did not wait. */
const begunIn = async (
  turns: FairTurns,
  count: number,
  before: (turn: number) => void,
): Promise<number[]> => {
  const begun = begin(turns, 'a', 100)
  await nextTurn()
  assert.is(begun(), 20)
  const counts: number[] = []
  for (let turn = 0; turn < count; turn++) {
    before(turn)
    const former = begun()
    await nextTurn()
    await Promise.resolve()
    counts.push(begun() - former)
  }
  return counts
}

fair('with a long step of background work begin eight operations, and with a short one twenty', async () => {
  const turns = new FairTurns()
  const begun = await begunIn(turns, 4, (turn) => turns.step(() => turn % 2 === 0))
  assert.equal(begun, [8, 20, 8, 20])
})

fair('begin nothing after a pause of the garbage collector, but never nothing twice', async () => {
  let hasPaused = false
  const turns = new FairTurns({ hasPaused: () => hasPaused })
  let steps = 0
  const begun = await begunIn(turns, 5, (turn) => {
    hasPaused = turn > 0
    turns.step(() => {
      steps++
      return false
    })
  })
  assert.equal(begun, [20, 0, 20, 0, 20])
  assert.is(steps, 5)
})

fair('call each step of background work once, also without operations and after a pause', async () => {
  const turns = new FairTurns({ hasPaused: () => true })
  const steps: string[] = []
  const step = (name: string) =>
    turns.step(() => {
      steps.push(name)
      return true
    })
  step('first')
  step('second')
  for (let n = 0; n < 3; n++) await nextTurn()
  assert.equal(steps, ['first', 'second'])
})

/** Milliseconds that operations of `orgs` took and milliseconds until all had begun, while another one is active. */
const crowded = async (orgs: readonly string[]): Promise<{ worked: number; passed: number }> => {
  const turns = new FairTurns()
  void turns.take('quiet')
  const began = performance.now()
  let worked = 0
  const operation = async (org_id: string) => {
    const turn = turns.take(org_id)
    if (turn) await turn
    const from = performance.now()
    while (performance.now() - from < 1);
    worked += Math.min(performance.now() - from, 10) // a machine that pauses longer is not work
  }
  await Promise.all(orgs.flatMap((org_id) => Array.from({ length: 60 }, () => operation(org_id))))
  return { worked, passed: performance.now() - began }
}

fair('leave half of the time free if the operations of one organization wait', async () => {
  const { worked, passed } = await crowded(['flood'])
  assert.ok(passed > 1.6 * worked, `${passed} ms passed for ${worked} ms of work`)
})

fair('leave a smaller share free if more organizations wait', async () => {
  const { worked, passed } = await crowded(['a', 'b', 'c', 'd'])
  assert.ok(passed > 1.1 * worked, `${passed} ms passed for ${worked} ms of work`)
})

fair.run()
