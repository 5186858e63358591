import * as assert from 'uvu/assert'
import { isCursor } from '../../../src/adapters/embedded/eventStore/cursors.ts'
import { type Loss, lossesIn, type Traces } from '../../../src/commands/installation/lossOf.ts'
import { START } from '../../../src/events/event.ts'
import { suite } from '../../support/suite.ts'
import { cursorOf } from '../../contracts/readModels/collection.ts'

const [at60, at200, at230] = [60, 200, 230].map(cursorOf) as [string, string, string]

/** An installation of log `a`, whose head is at 200, with everything in its place. */
const whole: Traces = {
  log: { ids: ['a'], hasFacts: true, head: at200, hadCheckpoint: true, remembered: at200 },
  readModels: { log_id: 'a', checkpoint: at200 },
  blobs: { log_id: 'a', isUsed: false },
}
const empty: Traces = {
  log: { ids: [], hasFacts: false, head: START, hadCheckpoint: true, remembered: START },
  readModels: { log_id: null, checkpoint: null },
  blobs: { log_id: null, isUsed: false },
}

interface Given {
  readonly log?: Partial<Traces['log']>
  readonly readModels?: Partial<Traces['readModels']>
  readonly blobs?: Partial<Traces['blobs']>
}

const lossesOf = (base: Traces, { log, readModels, blobs }: Given = {}): readonly Loss[] =>
  lossesIn(
    {
      log: { ...base.log, ...log },
      readModels: { ...base.readModels, ...readModels },
      blobs: { ...base.blobs, ...blobs },
    },
    isCursor,
  )

const rules = suite('a loss of events')

rules('is not found in a whole installation, a new one, or one whose read models are behind', () => {
  assert.equal(lossesOf(whole), [])
  assert.equal(lossesOf(empty), [])
  assert.equal(lossesOf(whole, { readModels: { checkpoint: at60 } }), [])
  assert.equal(lossesOf(whole, { readModels: { log_id: null, checkpoint: null } }), [])
  assert.equal(lossesOf(whole, { blobs: { log_id: null } }), [])
})

rules('is not found after an interrupted first start, which leaves a root key at most', () => {
  assert.equal(lossesOf(empty, { log: { ids: ['a'], head: at60, remembered: at60 } }), [])
})

rules('is not found in an installation of an earlier version, whose engines name no log', () => {
  const { readModels, blobs } = { readModels: { log_id: null }, blobs: { log_id: null, isUsed: true } }
  assert.equal(lossesOf(whole, { log: { ids: [] }, readModels, blobs }), [])
  assert.equal(lossesOf(whole, { readModels, blobs }), [])
})

rules('is found when the index or the read models are ahead of the log', () => {
  assert.equal(lossesOf(whole, { log: { remembered: at230 } }), [
    { seenBy: 'event store', missing: 'end', range: { after: at200, upTo: at230 } },
  ])
  for (const log_id of ['a', null])
    assert.equal(lossesOf(whole, { readModels: { log_id, checkpoint: at230 } }), [
      { seenBy: 'read models', missing: 'end', range: { after: at200, upTo: at230 } },
    ])
})

rules('is found when others have made the log longer than the read models', () => {
  const log = { hadCheckpoint: false }
  assert.equal(lossesOf(whole, { log, readModels: { checkpoint: at60 } }), [
    { seenBy: 'read models', missing: 'end', range: null },
  ])
  const accepted = { ...log, ids: ['a', 'b'] }
  assert.equal(lossesOf(whole, { log: accepted, readModels: { checkpoint: at60 } }), [])
})

rules('is found when there is no log, but index, read models or blobs of one', () => {
  const range = { after: START, upTo: at60 }
  assert.equal(lossesOf(empty, { log: { remembered: at60 } }), [
    { seenBy: 'event store', missing: 'log', range },
  ])
  for (const log_id of ['a', null])
    assert.equal(lossesOf(empty, { readModels: { log_id, checkpoint: at60 } }), [
      { seenBy: 'read models', missing: 'log', range },
    ])
  for (const blobs of [
    { log_id: 'a', isUsed: false },
    { log_id: null, isUsed: true },
  ])
    assert.equal(lossesOf(empty, { blobs }), [{ seenBy: 'blobs', missing: 'log', range: null }])
})

rules('is found when read models or blobs belong to another log', () => {
  assert.equal(lossesOf(whole, { readModels: { log_id: 'b' } }), [
    { seenBy: 'read models', missing: 'other', range: { after: START, upTo: at200 } },
  ])
  assert.equal(lossesOf(whole, { blobs: { log_id: 'b' } }), [
    { seenBy: 'blobs', missing: 'other', range: null },
  ])
  const ofAnotherStore = 'f'.repeat(32) // its positions cannot be counted here
  assert.equal(lossesOf(whole, { readModels: { log_id: null, checkpoint: ofAnotherStore } }), [
    { seenBy: 'read models', missing: 'other', range: null },
  ])
})

rules('is over once it was accepted: what is from before is built again', () => {
  const log = { ids: ['a', 'b'] }
  assert.equal(lossesOf(whole, { log, readModels: { log_id: 'a', checkpoint: at230 } }), [])
  assert.equal(lossesOf(whole, { log, readModels: { log_id: 'b' } }), [])
})

rules('is found when the log is a copy from before an accepted loss', () => {
  assert.is(lossesOf(whole, { readModels: { log_id: 'b' } })[0]?.missing, 'other')
})
rules.run()
