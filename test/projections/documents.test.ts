import * as assert from 'uvu/assert'
import type { DomainEvent, EventOf } from '../../src/events/index.ts'
import { events } from '../../src/projections/events.ts'
import { files } from '../../src/projections/files.ts'
import { allProjections } from '../../src/projections/index.ts'
import { uploads } from '../../src/projections/uploads.ts'
import { workers } from '../../src/projections/workers.ts'
import { suite } from '../support/suite.ts'
import { at, beginsWith, docsAfter, order } from './recorded.ts'

const file = suite('the document of a file')
const fileFields = {
  file_id: 'f',
  path: 'a/b',
  key: 'files/env/v1',
  size: 3,
  etag: '"e"',
  content_type: 'text/plain',
  storage_backend: 'disk',
  created_by_run_id: null,
  updated_by_run_id: 'r',
  created_at: at(0),
  updated_at: at(1),
}
const stored: DomainEvent = { type: 'FileStored', ...fileFields }
const former = { key: 'files/env/v1', size: 3 }
file('has the fields of the fact', () =>
  assert.equal(docsAfter(files, [stored]), { f: { ...fileFields, env_id: 'env' } }),
)
file('gets new content', () =>
  assert.equal(docsAfter(files, [stored, { ...stored, key: 'files/env/v2', size: 4, replaced: former }]), {
    f: { ...fileFields, key: 'files/env/v2', size: 4, env_id: 'env' },
  }),
)
file('is gone', () =>
  assert.equal(docsAfter(files, [stored, { type: 'FileDeleted', file_id: 'f', path: 'a/b', former }]), {}),
)
file.run()

const upload = suite('the document of an upload in parts')
const begun: DomainEvent = {
  type: 'UploadBegun',
  upload_id: 'u',
  path: 'a/b',
  content_type: 'text/plain',
  key: 'files/env/u',
  blob_upload_id: 'b',
  part_size: 1,
  parts_expected: 1,
  by_run_id: null,
  expires_at: at(5),
}
upload('exists while it is in progress', () =>
  assert.equal(docsAfter(uploads, [begun]), { u: { upload_id: 'u', env_id: 'env', expires_at: at(5) } }),
)
upload('is gone when it has ended', () => {
  assert.equal(docsAfter(uploads, [begun, { type: 'UploadCompleted', upload_id: 'u' }]), {})
  assert.equal(docsAfter(uploads, [begun, { type: 'UploadAborted', upload_id: 'u', reason: 'expired' }]), {})
})
upload.run()

const event = suite('the document of an event')
const event_time = '2026-05-01T09:59:00.000Z'
const published: EventOf<'EventPublished'> = {
  type: 'EventPublished',
  event_id: 'e',
  stream_id: 's',
  event_type: 'order:created',
  event_data: { n: 1 },
  source: 'api',
  event_time,
}
const eventDoc = {
  event_id: 'e',
  env_id: 'env',
  stream_id: 's',
  event_type: 'order:created',
  event_time,
  created_at: event_time,
  order: order(0),
  sent_by: null,
  call_id: null,
}
event('of a run names its sender', () => {
  const doc = docsAfter(events, [{ ...published, source: 'run:r' }])['e']
  assert.is(doc?.sent_by, `r/${order(0)}`)
})
event('that is a call is found by its id', () => {
  const doc = docsAfter(events, [{ ...published, event_type: 'svc:call' }])['e']
  assert.is(doc?.call_id, 'e')
})
event('contains the published type and data', () =>
  assert.equal(docsAfter(events, [published]), { e: { ...eventDoc, event_data: { n: 1 } } }),
)
event('may have no data', () => {
  const { event_data: _, ...bare } = published
  assert.equal(docsAfter(events, [bare]), { e: { ...eventDoc, event_data: null } })
})
event('may have its data in the blobs', () => {
  const { event_data: _, ...bare } = published
  const event_data_ref = { key: 'k', size: 70_000, sha256: 'h' }
  assert.equal(docsAfter(events, [{ ...bare, event_data_ref }]), { e: { ...eventDoc, event_data_ref } })
})
event('contains the defect that kept it from its handlers', () => {
  const error = { code: 'internal_server_error', message: 'x' }
  const handled: EventOf<'EventHandled'> = {
    type: 'EventHandled',
    event_id: 'e',
    stream_id: 's',
    run_ids: [],
  }
  const doc = { ...eventDoc, event_data: { n: 1 } }
  assert.equal(docsAfter(events, [published, { ...handled, error }]), {
    e: { ...doc, abandoned: order(1), error },
  })
  assert.equal(docsAfter(events, [published, handled]), { e: doc })
  assert.equal(docsAfter(events, [published, { ...handled, error: { ...error, code: 'cancelled' } }]), {
    e: doc,
  })
})
event('begins with its fact, whatever was stored before', () => beginsWith(events, published))
event.run()

const worker = suite('the document of a worker')
const started: DomainEvent = { type: 'WorkerStarted', worker_id: 'w', node: 'host/1', at: at(0) }
const workerDoc = { worker_id: 'w', node: 'host/1', alive: true, order: order(0) }
worker('is alive', () => assert.equal(docsAfter(workers, [started]), { w: workerDoc }))
worker('is not alive once it stopped or was lost', () => {
  for (const type of ['WorkerStopped', 'WorkerLost'] as const) {
    assert.equal(docsAfter(workers, [started, { type, worker_id: 'w', at: at(1) }]), {
      w: { ...workerDoc, alive: false },
    })
  }
})
worker.run()

const all = suite('every projection')
all('has a name of its own, and an index for each query sorted by a field of its documents', () => {
  assert.is(new Set(allProjections.map(({ name }) => name)).size, allProjections.length)
  for (const { name, indexes, version } of allProjections) {
    assert.ok(version >= 1, name)
    assert.is(new Set(indexes.map(({ equal, sort }) => `${equal.join()} ${sort}`)).size, indexes.length, name)
  }
})
all('begins its documents with facts that were tried', () => {
  const begun = allProjections.filter(({ begins }) => begins !== undefined).map(({ name }) => name)
  assert.equal(begun.toSorted(), ['audit', 'audit_links', 'events', 'runs', 'waitingRuns'])
})
all.run()
