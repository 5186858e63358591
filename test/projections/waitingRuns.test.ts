import * as assert from 'uvu/assert'
import type { DomainEvent } from '../../src/events/index.ts'
import type { Projection } from '../../src/projections/projection.ts'
import { Projector } from '../../src/projections/projector.ts'
import { waitingRuns } from '../../src/projections/waitingRuns.ts'
import { suite } from '../support/suite.ts'
import { newEvents, projecting } from './projectedNames.ts'
import { beginsWith, docsAfter } from './recorded.ts'
import { requestedRun, startedRun } from './waitingRun.ts'

const now = '2026-05-01T10:00:00.000Z'
const requested = requestedRun('run')
const started = startedRun('run')
const ending = {
  run_id: 'run',
  stream_id: 's',
  run_type: 'schedule',
  started_revision: null,
  stop_time: now,
} as const
const waiting = { run: { run_id: 'run', env_id: 'env', stream_id: 's' } }

const rule = suite('a run that only waits')

rule('is known from its request', () => assert.equal(docsAfter(waitingRuns, [requested]), waiting))

const ends: Record<string, DomainEvent> = {
  'a worker claims it': started,
  'it is cancelled': { type: 'RunCancelled', ...ending, was: 'requested' },
  'a defect prevents its claim': {
    type: 'RunFailed',
    ...ending,
    error: { code: 'internal_server_error', message: 'x' },
  },
}
for (const [what, fact] of Object.entries(ends))
  rule(`waits no more when ${what}`, () => assert.equal(docsAfter(waitingRuns, [requested, fact]), {}))

rule('is known again as its retry, under the id of the retry', () => {
  const again = { ...requested, run_id: 'again', attempt: 2, origin_run_id: 'run', event_id: 'e' }
  assert.equal(Object.keys(docsAfter(waitingRuns, [requested, started, again])), ['again'])
  const claimed = { ...started, run_id: 'again', attempt: 2, event_id: 'e' }
  assert.equal(docsAfter(waitingRuns, [requested, started, again, claimed]), {})
})

rule('is not one that a worker returned, because lists contain it', () =>
  assert.equal(docsAfter(waitingRuns, [{ ...requested, returned_by: 'w' }]), {}),
)

rule('begins with its request, whatever was stored before', () => beginsWith(waitingRuns, requested))

rule.run()

const projector = projecting('a projector of brief documents')

projector(
  'stores nothing of a document that ends in the batch where it began',
  async ({ store, readModels, run }) => {
    const brief: Projection = waitingRuns
    const projecting = new Projector(brief, { readModels, store })
    await store.append('s', newEvents([requested, started]), 'none')
    const long = { ...requested, run_id: 'long' }
    const { cursor } = await store.append('t', newEvents([long]), 'none')
    void run(projecting)
    await projecting.reach(cursor)
    const stored = await (await readModels.writer(brief)).stored(['run', 'long'])
    assert.equal([...stored.keys()], ['long'])
    const ended = await store.append('t', newEvents([{ ...started, run_id: 'long' }]), 0)
    await projecting.reach(ended.cursor)
    assert.is(await readModels.reader(brief).get('long'), null)
  },
)

projector.run()
