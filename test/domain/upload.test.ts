import * as assert from 'uvu/assert'
import { assembled, demandRoomForPart, partsUpTo, upload, type UploadState } from '../../src/domain/upload.ts'
import { isAppError } from '../../src/errors.ts'
import type { DomainEvent, EventOf } from '../../src/events/index.ts'
import type { Part, Upload } from '../../src/events/upload.ts'
import { MAX_PARTS } from '../../src/ports/blobs.ts'
import { given as givenOf } from '../support/given.ts'
import { suite } from '../support/suite.ts'

const given = givenOf(upload, { env_id: 'env', correlation_id: 'c' })

const about = {
  upload_id: 'u',
  path: 'p',
  content_type: 'text/plain',
  key: 'files/env/u',
  blob_upload_id: 'b',
  part_size: 10,
  parts_expected: 1,
  by_run_id: null,
  expires_at: '2026-05-02',
}
const begun: DomainEvent = { type: 'UploadBegun', ...about }
const part: Part = { part_number: 1, size: 5, etag: '"e"', blob_etag: 'e' }
const added: EventOf<'PartUploaded'> = { type: 'PartUploaded', upload_id: 'u', ...part }
const joined = { type: 'UploadJoined', upload_id: 'u', parts: 1, parts_revision: 1 } as const
const completed = { type: 'UploadCompleted', upload_id: 'u' } as const
const aborted = { type: 'UploadAborted', upload_id: 'u', reason: 'asked' } as const

const begin = { type: 'BeginUpload', upload: about } as const
const add = { type: 'AddPart', part, now: '2026-05-01' } as const
const complete = { type: 'CompleteUpload' } as const
const abort = { type: 'AbortUpload', reason: 'asked', seen: 'pending' } as const

const life = suite('an upload in parts')
life('begins, once', () => {
  given()
    .when(begin)
    .then({ type: 'UploadBegun', ...about })
  given(begun).when(begin).then()
})
life('accepts parts, also with the same number again', () => {
  given(begun).when(add).then(added)
  given(begun, added)
    .when(add)
    .then({ ...added, replaced_size: 5 })
})
life('accepts no parts once it has expired', () =>
  given(begun)
    .when({ ...add, now: '2026-05-02' })
    .refuses('not_found'),
)
life('is completed once, also by a repeated command', () => {
  given(begun, added).when(complete).then(completed)
  given(begun, added, completed).when(complete).then()
})
life('whose parts are joined is completed, and can no longer be cancelled', () => {
  given(begun, added).when({ type: 'JoinParts', parts: 1, parts_revision: 1 }).then(joined)
  given(begun, added, joined).when({ type: 'JoinParts', parts: 1, parts_revision: 1 }).then()
  given(begun, added, joined, completed).when({ type: 'JoinParts', parts: 1, parts_revision: 1 }).then()
  given(begun, added, joined).when(abort).refuses('not_found')
  given(begun, added, joined).when(add).refuses('not_found')
  given(begun, added, joined).when(complete).then(completed)
})
life('whose completion stopped expires, unless the completion began after the upload was read', () => {
  const expire = { ...abort, reason: 'expired' } as const
  given(begun, added, joined)
    .when({ ...expire, seen: 'joined' })
    .then({ ...aborted, reason: 'expired' })
  given(begun, added, joined).when(expire).refuses('not_found')
  given(begun, added, joined, completed)
    .when({ ...expire, seen: 'joined' })
    .refuses('not_found')
})
life('that is cancelled cannot be completed', () =>
  given(begun, added, aborted).when({ type: 'JoinParts', parts: 1, parts_revision: 1 }).refuses('not_found'),
)
life('is cancelled, or expires', () => {
  given(begun, added).when(abort).then(aborted)
  given(begun)
    .when({ ...abort, reason: 'expired' })
    .then({ ...aborted, reason: 'expired' })
})
for (const [what, facts, aggregates] of [
  ['unknown', [], [add, complete, abort]],
  ['complete', [begun, added, completed], [add, abort]],
  ['cancelled', [begun, added, aborted], [add, complete, abort]],
] as const) {
  life(`that is ${what} does not exist`, () => {
    for (const command of aggregates)
      given(...facts)
        .when(command)
        .refuses('not_found')
  })
}
/** The state after the parts, each given as number and ETag. */
const stateAfter = (...parts: readonly (readonly [part_number: number, etag: string])[]) => {
  const metadata = { env_id: 'env', correlation_id: 'c' }
  const at = '2026-05-01'
  let state = upload.evolve(upload.initial(), { event: begun, metadata, at, revision: 0 } as never)
  for (const [index, [part_number, etag]] of parts.entries()) {
    const event = { ...added, part_number, etag }
    state = upload.evolve(state, { event, metadata, at, revision: index + 1 } as never)
  }
  return state as Extract<UploadState, { upload: Upload }>
}
life('does not grow by a part that arrives again, and knows each other one', () => {
  const { arrivals, parts } = stateAfter([1, 'a'], [2, 'a'], [1, 'a'], [1, 'b'], [2, 'a'], [1, 'a'])
  assert.equal(
    arrivals.map(({ revision }) => revision),
    [1, 2, 4, 6],
  )
  assert.equal(
    [...parts.values()].map(({ etag }) => etag),
    ['a', 'a'],
  )
  for (const [revision, etag] of ['a', 'a', 'a', 'b', 'b', 'a'].entries())
    assert.is(partsUpTo(arrivals, revision + 1).get(1)?.etag, etag)
})
life('accepts no part once very many were replaced, and names itself', () => {
  const replaced = (times: number) => ({
    upload: { upload_id: 'u' },
    arrivals: Array.from({ length: times }),
  })
  demandRoomForPart(replaced(3 * MAX_PARTS - 1))
  assert.throws(
    () => demandRoomForPart(replaced(3 * MAX_PARTS)),
    (error: unknown) => isAppError(error, 'quota_exceeded') && error.message.startsWith('Upload u: '),
  )
})
life.run()

const MIN = 5 << 20
const of = (...sizes: (number | undefined)[]) =>
  new Map(
    sizes
      .flatMap((size, i) =>
        size === undefined ? [] : [[i + 1, { ...part, part_number: i + 1, size }] as const],
      )
      .reverse(),
  )
const refusedBy = (parts: ReadonlyMap<number, Part>, expected_size?: number): string => {
  try {
    assembled({ upload: expected_size === undefined ? {} : { expected_size }, parts })
    return 'accepted'
  } catch (error) {
    assert.ok(isAppError(error, 'bad_request'))
    return error.message
  }
}

const rules = suite('the part rules')
rules('order parts by number, not by arrival', () => {
  const { parts, size } = assembled({ upload: {}, parts: of(MIN, MIN + 1, 1) })
  assert.equal(
    parts.map(({ part_number }) => part_number),
    [1, 2, 3],
  )
  assert.is(size, 2 * MIN + 2)
})
rules('allow a single part of any size, also an empty one', () => {
  assert.is(refusedBy(of(0)), 'accepted')
  assert.is(refusedBy(of(1)), 'accepted')
})
rules('require at least one part', () => assert.match(refusedBy(of()), /at least one/))
rules('require consecutive numbers', () => assert.match(refusedBy(of(MIN, undefined, MIN)), /no part 2/))
rules('require part 1', () => assert.match(refusedBy(of(undefined, MIN)), /no part 1/))
rules('require 5 MB of every part but the last', () => {
  assert.is(refusedBy(of(MIN, 1)), 'accepted')
  assert.match(refusedBy(of(MIN - 1, 1)), /^part 1: expected at least 5242880 bytes.*got 5242879$/)
})
rules('require the expected size in total', () => {
  assert.is(refusedBy(of(7), 7), 'accepted')
  assert.match(refusedBy(of(7), 8), /expected 8 bytes in total.*got 7/)
})
rules('allow at most 10,000 parts', () => {
  const many = of(...Array.from({ length: 10_000 }, () => MIN))
  assert.is(refusedBy(many), 'accepted')
  assert.match(refusedBy(new Map(many).set(10_001, { ...part, part_number: 10_001 })), /at most 10000/)
})
rules.run()
