import { setImmediate as nextTurn } from 'node:timers/promises'
import * as assert from 'uvu/assert'
import { Slices } from '../../src/loops/slices.ts'
import { suite } from '../support/suite.ts'

const HOUR = 3_600_000
const SLICE_MS = 1

const sliced = suite('the slices of background work')

/** Occupies the thread, as a fold or a write does. */
const work = (milliseconds: number): void => {
  const until = performance.now() + milliseconds
  while (performance.now() < until);
}

sliced('work continues at once while there is time in this turn', () => {
  const slices = new Slices()
  slices.lengthen(HOUR)
  assert.is(slices.take(), null)
  assert.is(slices.take(), null)
})

sliced('work waits for the next turn when the time of this one is used up', async () => {
  const slices = new Slices()
  void slices.take()
  work(slices.left)
  assert.is(slices.left, 0)
  slices.lengthen(HOUR)
  let continued = false
  const waiting = slices.take()?.then(() => (continued = true))
  await Promise.resolve()
  assert.is(continued, false)
  await waiting
  assert.ok(slices.left > 0)
})

sliced('all work together gets one slice in a turn, in the order in which it waits', async () => {
  const slices = new Slices()
  slices.lengthen(SLICE_MS)
  const step = SLICE_MS / 2
  void slices.take()
  work(slices.left)
  const order: string[] = []
  const worker = async (name: string) => {
    for (let n = 0; n < 4; n++) {
      await slices.take()
      order.push(name)
      work(step)
    }
  }
  const workers = ['a', 'b', 'c'].map(worker)
  for (let known = -1; known < order.length || known === 0;) {
    known = order.length
    await nextTurn()
    assert.ok(order.length - known <= 3, `${order.length - known} steps in one turn`)
  }
  await Promise.all(workers)
  assert.is(order.join(''), 'abcabcabcabc')
})

sliced('work for many items leaves the turn to others between them', async () => {
  const slices = new Slices()
  const done: number[] = []
  const items = Array.from({ length: 64 }, (_, n) => n)
  const all = slices.each(items, (n) => {
    done.push(n)
    work(0.2)
  })
  await nextTurn()
  assert.ok(done.length < items.length, `${done.length} items in one turn`)
  await all
  assert.equal(done, items)
})

sliced('short work of several waits for no turn of its own', async () => {
  const slices = new Slices()
  void slices.take()
  work(slices.left)
  let done = 0
  for (let n = 0; n < 20; n++) void slices.take()?.then(() => done++)
  await nextTurn()
  await nextTurn()
  assert.ok(done > 1, `${done} of 20 continued in one turn`)
})

/** Ten times: the turns, each with other work, until background work that used up its slice continues, and their milliseconds. */
const waits = async (
  slices: Slices,
  otherMs: number,
): Promise<{ turns: number[]; milliseconds: number[] }> => {
  const [turns, milliseconds]: [number[], number[]] = [[], []]
  for (let n = 0; n < 10; n++) {
    await slices.take()
    const since = performance.now() + slices.left
    work(slices.left)
    let hasContinued = false
    void slices.take()?.then(() => (hasContinued = true))
    let turn = 0
    for (; !hasContinued; turn++) {
      work(otherMs)
      await nextTurn()
    }
    turns.push(turn)
    milliseconds.push(performance.now() - since)
  }
  return { turns, milliseconds }
}

/** The fewest: the system may interrupt the thread in some turns. */
const fewest = async (slices: Slices, otherMs: number): Promise<number> =>
  Math.min(...(await waits(slices, otherMs)).turns)

/** Whether other work always got its four milliseconds, in several turns. */
const doesRest = async (slices: Slices): Promise<boolean> => {
  const { turns, milliseconds } = await waits(slices, SLICE_MS)
  return Math.max(...turns) > 1 && Math.min(...milliseconds) >= 4 * SLICE_MS
}

sliced(
  'work that may rest leaves four slices to other work of a busy loop, except in a thread without requests',
  async () => {
    assert.ok(await doesRest(new Slices({ rests: true })))
    assert.is(await fewest(new Slices(), SLICE_MS), 1)
    const lengthened = new Slices({ rests: true })
    lengthened.lengthen(SLICE_MS)
    assert.is(await fewest(lengthened, SLICE_MS), 1)
  },
)

sliced(
  'work that may rest continues in the next turn when the loop is idle, or when a turn is long',
  async () => {
    assert.is(await fewest(new Slices({ rests: true }), 0), 1)
    assert.is(await fewest(new Slices({ rests: true }), 5 * SLICE_MS), 1)
  },
)

sliced('work does not rest while a reader waits for it, and rests again afterwards', async () => {
  const slices = new Slices({ rests: true })
  const result = Promise.withResolvers<string>()
  const reader = slices.readerOf(result.promise)
  assert.is(await fewest(slices, SLICE_MS), 1)
  result.resolve('read')
  assert.is(await reader, 'read')
  assert.ok(await doesRest(slices))
  await slices.readerOf(Promise.reject(new Error('gone'))).catch(() => {})
  assert.ok(await doesRest(slices))
})

sliced('a slice begins as a step of the turns that it joins, which is long only if work waits', async () => {
  const steps: (() => boolean)[] = []
  const slices = new Slices()
  slices.join({ step: (step) => steps.push(step) })
  void slices.take()
  work(slices.left)
  let hasContinued = false
  const waiting = slices.take()?.then(() => (hasContinued = true))
  await nextTurn()
  assert.is(hasContinued, false)
  assert.is(steps.shift()?.(), true)
  await waiting
  assert.is(steps.shift()?.(), false)
  assert.equal(steps, [])
})

sliced.run()
