import * as assert from 'uvu/assert'
import { webhook, webhooksIn } from '../../src/domain/webhook.ts'
import { given as givenOf } from '../support/given.ts'
import { suite } from '../support/suite.ts'

const given = givenOf(webhook, { env_id: 'env', correlation_id: 'c' })
const address = { method: 'POST', service: 'pay', path: '/paid' }
const holder = (project_id: string, fence: number) => ({
  project_id,
  fence,
  reserved_at: '2026-05-01T10:00:00.000Z',
})
const reserved = (project_id: string, fence: number) =>
  ({ type: 'WebhookReserved', ...address, ...holder(project_id, fence) }) as const
const reserve = (by: ReturnType<typeof holder>, instead?: ReturnType<typeof holder>) =>
  ({ type: 'ReserveWebhook', webhook: address, by, ...(instead && { instead }) }) as const

const webhooks = suite('a webhook address')
webhooks('is reserved by the first project that requests it', () =>
  given()
    .when(reserve(holder('p', 0)))
    .then(reserved('p', 0)),
)
webhooks('is refused to another project', () =>
  given(reserved('p', 0))
    .when(reserve(holder('q', 9)))
    .refuses('conflict'),
)
webhooks('is reserved once for each deployment of its project', () => {
  given(reserved('p', 3))
    .when(reserve(holder('p', 3)))
    .then()
  given(reserved('p', 3))
    .when(reserve(holder('p', 7)))
    .then(reserved('p', 7))
  given(reserved('p', 3))
    .when(reserve(holder('p', 0)))
    .then()
})
webhooks('is taken over from a void reservation, not from a later one', () => {
  given(reserved('p', 3))
    .when(reserve(holder('q', 0), holder('p', 3)))
    .then(reserved('q', 0))
  given(reserved('p', 3), reserved('p', 5))
    .when(reserve(holder('q', 0), holder('p', 3)))
    .refuses('conflict')
  given(reserved('p', 3), reserved('r', 3))
    .when(reserve(holder('q', 0), holder('p', 3)))
    .refuses('conflict')
})
webhooks('is found among the functions of a build', () => {
  const spec = { ...address, name: 'n', description: '', auth: 'none' } as const
  assert.equal(
    webhooksIn([
      { ns: 'a', var: 'b' },
      { ns: 'a', var: 'c', webhook: spec },
    ]),
    [address],
  )
})
webhooks.run()
