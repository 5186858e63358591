import * as assert from 'uvu/assert'
import type { DomainEvent, EventOf } from '../../src/events/index.ts'
import { callDays } from '../../src/projections/callDays.ts'
import { fileTotals } from '../../src/projections/fileTotals.ts'
import { holdings } from '../../src/projections/holdings.ts'
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
calls('of a counted day are the numbers of its count, also if facts of the day have expired', () => {
  const counted = { type: 'CallDayCounted', env_id: 'env', day: '2026-05-01', runs: 3, bytes: 12 } as const
  const whole = callsAfter(begun, begun, begun, { ...published }, counted)
  assert.equal(whole, { env_id: 'env', day: '2026-05-01', runs: 3, bytes: 12 })
  assert.equal(callsAfter(begun, counted), whole)
  assert.equal(callsAfter(counted), whole)
})
calls('of expired days keep their numbers, and one document has the first day that did not expire', () => {
  const expired = (before: string) => ({ type: 'CallsExpired', env_id: 'env', before }) as const
  const day = { env_id: 'env', day: '2026-05-01', runs: 1, bytes: 0 }
  const none = { env_id: 'env', day: '', runs: 0, bytes: 0 }
  assert.equal(docsAfter(callDays, [begun, expired('2026-05-02'), expired('2026-05-03')]), {
    'env/2026-05-01': day,
    env: { ...none, expired_before: '2026-05-03' },
  })
})
calls('count a run once, also when a second worker claims it or its first attempt was lost', () => {
  assert.is(callsAfter(begun, { ...begun, reclaimed: true })?.runs, 1)
  assert.is(callsAfter(begun, { ...begun, lost: 1, replaces_lost: true })?.runs, 1)
})
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
  const body_ref = { ...ref, size: 1000 }
  assert.is(callsAfter({ type: 'RunRequested', ...plan, input: { ...input, body_ref } })?.bytes, 71_005)
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

const held = suite('what an environment stores besides its files')
const build = (build_id: string, size: number): DomainEvent => ({
  type: 'BuildUploaded',
  build_id,
  project_id: 'p',
  hash: 'h',
  size,
  build_type: 'release',
  storage_path: 'builds/x',
  storage_backend: 'disk',
  functions: [],
})
const part = (part_number: number, size: number, replaced_size?: number): DomainEvent => ({
  type: 'PartUploaded',
  upload_id: 'u',
  part_number,
  size,
  etag: '"e"',
  blob_etag: 'e',
  ...(replaced_size !== undefined && { replaced_size }),
})
const upload: DomainEvent = {
  type: 'UploadBegun',
  upload_id: 'u',
  path: 'a',
  content_type: 'text/plain',
  key: 'k',
  blob_upload_id: 'b',
  part_size: 5,
  parts_expected: 1,
  by_run_id: null,
  expires_at: time,
}
const builds = (bytes: number) => ({ p: { holder: 'p', env_id: 'env', kind: 'builds', bytes } })
const parts = (bytes: number) => ({ u: { holder: 'u', env_id: 'env', kind: 'parts', bytes } })

held('are the zips of builds until they or their project are deleted', () => {
  assert.equal(docsAfter(holdings, [build('a', 10), build('b', 5)]), builds(15))
  const deleted: DomainEvent = {
    type: 'BuildDeleted',
    build_id: 'a',
    project_id: 'p',
    size: 10,
    reason: 'asked',
  }
  assert.equal(docsAfter(holdings, [build('a', 10), build('b', 5), deleted]), builds(5))
  const gone: DomainEvent = { type: 'ProjectDeleted', project_id: 'p', build_ids: ['a'] }
  assert.equal(docsAfter(holdings, [build('a', 10), gone]), {})
})
held('are the parts of uploads in progress, each number once', () => {
  assert.equal(docsAfter(holdings, [upload]), parts(0))
  assert.equal(docsAfter(holdings, [upload, part(1, 10), part(2, 5), part(1, 3, 10)]), parts(8))
  const over: DomainEvent[] = [
    { type: 'UploadCompleted', upload_id: 'u' },
    { type: 'UploadAborted', upload_id: 'u', reason: 'expired' },
  ]
  for (const end of over) assert.equal(docsAfter(holdings, [upload, part(1, 10), end]), {})
})
held.run()
