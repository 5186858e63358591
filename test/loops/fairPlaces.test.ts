import * as assert from 'uvu/assert'
import { AppError } from '../../src/errors.ts'
import { FairPlaces } from '../../src/loops/fairPlaces.ts'
import { suite } from '../support/suite.ts'

/** Takes as many places as the owner gets at once. */
const fill = (places: FairPlaces, owner: string): number => {
  let taken = 0
  while (places.tryTake(owner)) taken++
  return taken
}

const fair = suite('places that organizations share')

fair('are given at once while they are free', () => {
  const places = new FairPlaces({ total: 4, perFree: 2 })
  assert.ok(places.tryTake('a'))
  assert.ok(places.tryTake('b'))
  assert.equal([places.taken, places.takenBy('a'), places.takenBy('none')], [2, 1, 0])
})

fair('are never all taken by one organization, so a newcomer does not wait', () => {
  for (const total of [4, 8, 32, 64]) {
    const places = new FairPlaces({ total, perFree: 2 })
    const greedy = fill(places, 'greedy')
    assert.ok(greedy >= total / 2, `${greedy} of ${total}`)
    assert.ok(places.tryTake('newcomer'), `${greedy} of ${total} were left to the newcomer`)
  }
})

fair(
  'of 32 leave one to the eighth organization, although seven take as many as they get and keep them',
  () => {
    const places = new FairPlaces({ total: 32, perFree: 2 })
    for (let n = 0; n < 7; n++) assert.ok(fill(places, `greedy ${n}`) > 0)
    assert.ok(places.tryTake('newcomer'))
  },
)

fair('are at most the total', () => {
  const places = new FairPlaces({ total: 10, perFree: 2 })
  for (let n = 0; n < 100; n++) fill(places, `org ${n}`)
  assert.is(places.taken, 10)
})

fair('a single place may be taken by any organization', () => {
  const places = new FairPlaces({ total: 1, perFree: 2 })
  assert.ok(places.tryTake('a'))
  assert.not(places.tryTake('b'))
})

fair('that become free go to the waiting organization with the fewest', async () => {
  const places = new FairPlaces({ total: 4, perFree: 2 })
  fill(places, 'a')
  fill(places, 'b')
  const order: string[] = []
  const waits = ['a', 'a', 'c', 'b'].map((owner) => places.take(owner).then(() => order.push(owner)))
  assert.ok(places.waitsFor('c'))
  for (const owner of ['a', 'a', 'a', 'c', 'b', 'b', 'a']) {
    if (places.takenBy(owner) > 0) places.giveBack(owner)
    await Promise.resolve()
  }
  await Promise.all(waits)
  assert.is(order[0], 'c')
})

fair('that become free are taken in turns by equal organizations', async () => {
  const places = new FairPlaces({ total: 1, perFree: 2 })
  places.tryTake('first')
  const order: string[] = []
  const waits = ['a', 'a', 'b', 'b'].map((owner) => places.take(owner).then(() => order.push(owner)))
  places.giveBack('first')
  for (let n = 0; n < 4; n++) {
    await Promise.resolve()
    await Promise.resolve()
    const last = order.at(-1)
    if (last !== undefined) places.giveBack(last)
  }
  await Promise.all(waits)
  assert.equal(order, ['a', 'b', 'a', 'b'])
})

fair('are not given to a request that has left', async () => {
  const places = new FairPlaces({ total: 1, perFree: 2 })
  places.tryTake('a')
  const leave = new AbortController()
  const left = places.take('b', leave.signal).catch((error: unknown) => error)
  const stays = places.take('b')
  leave.abort()
  assert.instance(await left, AppError)
  places.giveBack('a')
  await stays
  assert.is(places.takenBy('b'), 1)
})

fair.run()
