import * as assert from 'uvu/assert'
import { START } from '../../../src/events/event.ts'
import { newId } from '../../../src/ids.ts'
import type { Suite } from '../../support/suite.ts'
import { aCollection, byTime, cursorOf, type OpenReadModels } from './collection.ts'

/** The rules for the log that read models were folded from. */
export const sourceContract = (source: Suite<OpenReadModels>): void => {
  source('new read models name no log, and keep the one that they are given', async ({ readModels }) => {
    assert.equal(await readModels.source(), { log_id: null, checkpoint: null })
    const [first, second] = [newId(), newId()]
    await readModels.assign(first)
    assert.is((await readModels.source()).log_id, first)
    await readModels.assign(second)
    assert.is((await readModels.source()).log_id, second)
  })

  source('the newest checkpoint counts, of whichever collection', async ({ readModels }) => {
    for (const position of [3, 9, 5]) {
      const writer = await readModels.writer(aCollection().spec)
      await writer.write([], cursorOf(position))
    }
    await (await readModels.writer(aCollection().spec)).write([], START)
    assert.is((await readModels.source()).checkpoint, cursorOf(9))
  })

  source('documents that contain later events can be counted', async ({ readModels }) => {
    const before = await readModels.countAfter(cursorOf(2))
    const { spec, put } = aCollection()
    const writer = await readModels.writer(spec)
    await writer.write(
      [
        put('a', {}, cursorOf(1)),
        put('b', {}, cursorOf(2)),
        put('c', {}, cursorOf(3)),
        put('d', null, cursorOf(4)),
        put('e', {}, cursorOf(5)),
      ],
      cursorOf(5),
    )
    const counters = await readModels.writer(aCollection().spec)
    await counters.write([put('node', {}, cursorOf(99))], START) // not folded from the log
    assert.is((await readModels.countAfter(cursorOf(2))) - before, 2)
  })

  source('after a restart there is no collection, and another log', async ({ readModels }) => {
    const { spec, put } = aCollection()
    const writer = await readModels.writer(spec)
    await writer.write([put('a', { id: 'a', at: 1 })], cursorOf(7))
    const log_id = newId()
    await readModels.restart(log_id)
    assert.equal(await readModels.source(), { log_id, checkpoint: null })
    const again = await readModels.writer(spec)
    assert.is(await again.checkpoint(), null)
    assert.is(await again.get('a'), null)
    await again.write([put('b', { id: 'b', at: 1 }, cursorOf(1))], cursorOf(1))
    assert.is((await readModels.reader(spec).find(byTime)).total, 1)
  })
}
