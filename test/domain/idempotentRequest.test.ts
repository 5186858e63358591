import { request } from '../../src/domain/idempotentRequest.ts'
import type { EventOf } from '../../src/events/index.ts'
import { given as givenOf } from '../support/given.ts'
import { suite } from '../support/suite.ts'

const given = givenOf(request, { env_id: 'env', correlation_id: 'c' })
const now = '2026-05-01T10:00:00.000Z'
const until = '2026-05-02T10:00:00.000Z'
const claimed = (attempt = 1, more: Partial<EventOf<'RequestClaimed'>> = {}): EventOf<'RequestClaimed'> => ({
  type: 'RequestClaimed',
  claim_id: 'first',
  attempt,
  fingerprint: 'f',
  holder: 'a',
  at: now,
  until,
  ...more,
})
const answered: EventOf<'RequestAnswered'> = {
  type: 'RequestAnswered',
  claim_id: 'first',
  attempt: 1,
  sealed: '1.xx',
  until,
}
const released: EventOf<'RequestReleased'> = { type: 'RequestReleased', claim_id: 'first', attempt: 1 }
const claim = (more: { readonly now?: string; readonly [name: string]: unknown } = {}) =>
  ({
    type: 'ClaimRequest',
    claim_id: 'second',
    fingerprint: 'f',
    keyName: 'Idempotency-Key',
    holder: 'b',
    now,
    at: more.now ?? now,
    until,
    ...more,
  }) as const
const answer = (attempt: number) =>
  ({ type: 'AnswerRequest', attempt, answer: { sealed: '1.xx' }, until }) as const

const keys = suite('a request with a key')
keys('is claimed by the first request', () =>
  given()
    .when(claim())
    .then(claimed(1, { claim_id: 'second', holder: 'b' })),
)
keys('is left to the node that holds its claim', () => given(claimed()).when(claim()).then())
for (const [what, first, again] of [
  ['in order', { fingerprint: 'xy', sorted_fingerprint: 'sorted' }, { fingerprint: 'sorted' }],
  ['in another order', { fingerprint: 'sorted' }, { fingerprint: 'xy', sorted_fingerprint: 'sorted' }],
  [
    'in a third order',
    { fingerprint: 'xy', sorted_fingerprint: 'sorted' },
    { fingerprint: 'yx', sorted_fingerprint: 'sorted' },
  ],
  ['after an upgrade', { fingerprint: 'xy' }, { fingerprint: 'xy', sorted_fingerprint: 'sorted' }],
] as const) {
  keys(`is the same with its fields ${what}`, () => given(claimed(1, first)).when(claim(again)).then())
  keys(`is the same with its fields ${what} after its release`, () =>
    given(claimed(1, first), released)
      .when(claim(again))
      .then(claimed(2, { holder: 'b', ...again })),
  )
}
keys('is another one if its fields have other values', () =>
  given(claimed(1, { fingerprint: 'xy', sorted_fingerprint: 'sorted' }))
    .when(claim({ fingerprint: 'yx', sorted_fingerprint: 'other' }))
    .refuses('idempotency_key_reused'),
)
keys('is taken over from a holder that is gone, under the same claim', () =>
  given(claimed())
    .when(claim({ gone: 1 }))
    .then(claimed(2, { holder: 'b' })),
)
keys('is not taken over from the one that took over', () =>
  given(claimed(), claimed(2, { holder: 'c' }))
    .when(claim({ gone: 1 }))
    .then(),
)
keys('keeps the stream of the first attempt until the key is free again', () => {
  const first = claimed(1, { stream_id: 'one' })
  const other = claim({ stream_id: 'two' })
  given(first, released)
    .when(other)
    .then(claimed(2, { holder: 'b', stream_id: 'one' }))
  given(first)
    .when({ ...other, now: until, at: until })
    .then(claimed(2, { claim_id: 'second', holder: 'b', at: until, stream_id: 'two' }))
})
keys('is answered once', () => {
  given(claimed()).when(answer(1)).then(answered)
  given(claimed(), answered).when(answer(1)).then()
})
keys('is not answered by an attempt that was taken over', () =>
  given(claimed(), claimed(2)).when(answer(1)).then(),
)
keys('is not claimed again once it is answered', () => given(claimed(), answered).when(claim()).then())
keys('is claimed again, under the same claim, when its answer was erased', () => {
  given(claimed(), answered)
    .when(claim({ gone: 1 }))
    .then(claimed(2, { holder: 'b' }))
  given(claimed(), answered, claimed(2, { holder: 'c' }))
    .when(claim({ gone: 1 }))
    .then()
})
keys('is claimed again, under the same claim, when there was no answer to keep', () => {
  given(claimed()).when({ type: 'ReleaseRequest', attempt: 1 }).then(released)
  given(claimed(), released)
    .when(claim())
    .then(claimed(2, { holder: 'b' }))
})
keys('is not released by an attempt that was taken over, nor once it is answered', () => {
  given(claimed(), claimed(2)).when({ type: 'ReleaseRequest', attempt: 1 }).then()
  given(claimed(), answered).when({ type: 'ReleaseRequest', attempt: 1 }).then()
})
for (const [what, facts] of [
  ['claimed', [claimed()]],
  ['answered', [claimed(), answered]],
  ['released', [claimed(), released]],
] as const) {
  keys(`that is ${what} is refused to another request`, () =>
    given(...facts)
      .when(claim({ fingerprint: 'other' }))
      .refuses('idempotency_key_reused'),
  )
  keys(`that was ${what} is free after its time, for any request`, () =>
    given(...facts)
      .when(claim({ fingerprint: 'other', now: until }))
      .then(claimed(2, { claim_id: 'second', fingerprint: 'other', holder: 'b', at: until })),
  )
}
keys.run()
