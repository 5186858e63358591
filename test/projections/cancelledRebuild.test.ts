import * as assert from 'uvu/assert'
import { isAppError } from '../../src/errors.ts'
import { silent } from '../../src/logger.ts'
import { rebuildRequested } from '../../src/projections/rebuilding.ts'
import { Rebuilds } from '../../src/projections/rebuilds.ts'
import { until } from '../support/until.ts'
import { any, dump, life, newEvents, projecting, withWriter } from './projectedNames.ts'
import {
  docOf,
  ended,
  forwardingProjectors,
  hasShadow,
  held,
  LOOK_MS,
  NAME,
  request,
  started,
} from './rebuildHarness.ts'

const cancelling = projecting('cancelling a rebuild')

const outcome = async (readModels: Parameters<typeof ended>[0]) => {
  const { state, error } = await ended(readModels)
  return [state, error, await hasShadow(readModels)]
}
const CANCELLED = ['failed', 'It was cancelled', false]

cancelling(
  'ends one that works, removes its documents, and lets another one begin',
  async ({ store, readModels, stopping }) => {
    await store.append('p', newEvents(life('p', 2)), 'none')
    const { projectors } = await started({ store, readModels, stopping })
    const before = await dump(readModels, any)
    const reads = held(projectors.reads)
    const deps = { readModels, store, logger: silent, onSkipped: () => {}, lookMs: LOOK_MS }
    void rebuildRequested(
      { ...deps, projectors: forwardingProjectors(projectors, reads) },
      stopping.signal,
    ).catch(() => {})
    await request(readModels)
    await until(() => reads.waiting.size === 1)
    assert.ok(await (await Rebuilds.open(readModels)).cancel(NAME))
    assert.equal(await outcome(readModels), CANCELLED)
    assert.equal(await dump(readModels, any), before)
    assert.not.ok(await (await Rebuilds.open(readModels)).cancel(NAME), 'it has ended')
    reads.release()
    await request(readModels)
    assert.is((await ended(readModels)).state, 'done')
  },
)

cancelling('ends one that waits for room', async ({ store, readModels, stopping }) => {
  await store.append('p', newEvents(life('p', 2)), 'none')
  const full = { ...withWriter(readModels, () => ({})), freeBytes: () => 0 }
  const { rebuilding } = await started({ store, readModels: full, stopping })
  rebuilding()
  await request(readModels)
  await until(async () => (await docOf(readModels))?.error?.includes('Free some space'))
  await (await Rebuilds.open(readModels)).cancel(NAME)
  assert.equal(await outcome(readModels), CANCELLED)
})

cancelling('ends one that no node has begun, before it begins', async ({ store, readModels, stopping }) => {
  await store.append('p', newEvents(life('p', 2)), 'none')
  const { rebuilding } = await started({ store, readModels, stopping })
  await request(readModels)
  const rebuilds = await Rebuilds.open(readModels)
  assert.ok(await rebuilds.cancel(NAME))
  const refusal = await rebuilds.request(NAME, { verify: false }).catch((error: unknown) => error)
  assert.ok(isAppError(refusal, 'conflict'), String(refusal))
  rebuilding()
  assert.equal(await outcome(readModels), CANCELLED)
})

cancelling('completes one that may have replaced the documents', async ({ store, readModels, stopping }) => {
  await store.append('p', newEvents(life('p', 2)), 'none')
  const { rebuilding } = await started({ store, readModels, stopping })
  await request(readModels)
  const rebuilds = await Rebuilds.open(readModels)
  await rebuilds.change(NAME, { state: 'replacing' })
  await rebuilds.cancel(NAME)
  rebuilding()
  assert.is((await ended(readModels)).state, 'done')
})

cancelling.run()
