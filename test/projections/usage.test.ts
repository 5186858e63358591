import * as assert from 'uvu/assert'
import type { DomainEvent, EventOf } from '../../src/events/index.ts'
import { callDays } from '../../src/projections/callDays.ts'
import { fileTotals } from '../../src/projections/fileTotals.ts'
import { suite } from '../support/suite.ts'
import { docsAfter, recorded } from './recorded.ts'

const time = '2026-05-01T10:00:00.000Z'

const calls = suite('the calls of a day')
const plan = {
  run_id: 'r',
  stream_id: 's',
  run_type: 'call',
  build_id: 'b',
  project_id: 'p',
  project_name: 'shop',
  target: { ns: 'a', var: 'b' },
  attempt: 1,
} as const
const ending = {
  run_id: 'r',
  stream_id: 's',
  run_type: 'call',
  started_revision: 0,
  stop_time: time,
} as const
const published: EventOf<'EventPublished'> = {
  type: 'EventPublished',
  event_id: 'e',
  stream_id: 's',
  event_type: 'order:created',
  event_data: { n: 1 },
  source: 'api',
  event_time: time,
}
const begun: DomainEvent = { type: 'RunStarted', ...plan, worker_id: 'w', start_time: time }
const ref = { key: 'k', size: 70_000, sha256: 'h' }
const callsAfter = (...facts: DomainEvent[]) => docsAfter(callDays, facts)['env/2026-05-01']

calls('are the runs that started', () =>
  assert.equal(callsAfter(begun, begun), { env_id: 'env', day: '2026-05-01', runs: 2, bytes: 0 }),
)
calls('keep the JSON of event data, inputs, live data, output, results and errors, in UTF-8', () => {
  const emitted = { type: 'StreamDataEmitted', run_id: 'r', stream_id: 's', data_type: 't' } as const
  const kept: readonly [DomainEvent, number][] = [
    [{ ...published, event_data: { a: 'é' } }, 10],
    [{ ...published, event_data: null }, 4],
    [{ type: 'RunRequested', ...plan, input: { kind: 'args', value: [1, 2], sealed: '1.abc' } }, 10],
    [{ type: 'RunRequested', ...plan }, 0],
    [{ ...emitted, payload: 'token' }, 7],
    [{ type: 'RunLogged', run_id: 'r', part: 0, lines: [{ at: '', source: 'stdout', text: 'x' }] }, 40],
    [{ type: 'RunSucceeded', ...ending, result: true }, 4],
    [{ type: 'RunFailed', ...ending, error: { code: 'c', message: 'm' } }, 26],
  ]
  for (const [fact, bytes] of kept) assert.is(callsAfter(fact)?.bytes, bytes, fact.type)
  assert.is(callsAfter(...kept.map(([fact]) => fact))?.bytes, 101)
})
calls('count data in the blobs, too', () => {
  const { event_data: _, ...bare } = published
  assert.is(callsAfter({ ...bare, event_data_ref: ref })?.bytes, 70_000)
  assert.is(callsAfter({ type: 'RunSucceeded', ...ending, result_ref: ref })?.bytes, 70_000)
  const input = { kind: 'webhook', value_ref: ref, sealed: '1.abc' } as const
  assert.is(callsAfter({ type: 'RunRequested', ...plan, input })?.bytes, 70_005)
})
calls('are counted by the day, UTC, on which the log stored them, for each environment', () => {
  const [late] = recorded([begun])
  if (!late) throw new Error('unreachable')
  const ids = ['2026-05-01T23:59:59.999Z', '2026-05-02T00:00:00.000Z'].map((at) =>
    callDays.idsOf({ ...late, at, metadata: { env_id: 'other', correlation_id: 'c' } }),
  )
  assert.equal(ids, [['other/2026-05-01'], ['other/2026-05-02']])
})
calls.run()

const fileTotal = suite('what the files of an environment come to')
const stored = (file_id: string, size: number, replaced?: number): DomainEvent => ({
  type: 'FileStored',
  file_id,
  path: file_id,
  key: `files/env/${file_id}/${size}`,
  size,
  etag: '"e"',
  content_type: 'text/plain',
  storage_backend: 'disk',
  created_by_run_id: null,
  updated_by_run_id: null,
  created_at: time,
  updated_at: time,
  ...(replaced !== undefined && { replaced: { key: 'k', size: replaced } }),
})
fileTotal('grows with each file, and by the difference with new content', () =>
  assert.equal(docsAfter(fileTotals, [stored('a', 10), stored('b', 5), stored('a', 4, 10)]), {
    env: { env_id: 'env', bytes: 9 },
  }),
)
fileTotal('shrinks when a file is deleted', () =>
  assert.equal(
    docsAfter(fileTotals, [
      stored('a', 10),
      stored('b', 5),
      { type: 'FileDeleted', file_id: 'a', path: 'a', former: { key: 'k', size: 10 } },
    ]),
    { env: { env_id: 'env', bytes: 5 } },
  ),
)
fileTotal.run()
