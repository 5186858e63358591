import * as assert from 'uvu/assert'
import { createClient, ServiceError } from '../../src/client/index.ts'
import { suite } from '../support/suite.ts'

/** The keys of the requests of `work`, whose first attempt is refused. */
const keysOf = async (work: (client: ReturnType<typeof createClient>) => Promise<unknown>) => {
  const keys: (string | null)[] = []
  const fetch = async (_: unknown, init?: RequestInit) => {
    keys.push(new Headers(init?.headers).get('idempotency-key'))
    return keys.length === 1
      ? Response.json({}, { status: 503, headers: { 'retry-after': '0' } })
      : Response.json({ data: {} })
  }
  await work(createClient({ url: 'http://localhost:1', token: 'k', fetch }))
  return keys
}

const EVAL = 'POST /v1/projects/{project}/eval'
const evaluation = { path: { project: 'shop' }, body: { code: '1' } }

const repeats = suite('a request that is repeated after a 503')

repeats('has the same key if it is a POST, and each request has another', async () => {
  const [first, again] = await keysOf((client) => client.request(EVAL, evaluation))
  assert.match(first ?? '', /^[0-9a-f]{32}$/)
  assert.is(again, first)
  assert.is.not((await keysOf((client) => client.request(EVAL, evaluation)))[0], first)
})

repeats('keeps the key that its caller chose, as an option or as a header', async () => {
  const chosen = ['mine', 'mine']
  assert.equal(
    await keysOf((client) => client.request(EVAL, { ...evaluation, idempotencyKey: 'mine' })),
    chosen,
  )
  const headers = { 'Idempotency-Key': 'mine' }
  assert.equal(await keysOf((client) => client.request(EVAL, { ...evaluation, headers })), chosen)
})

repeats('needs no key if it is no POST', async () => {
  assert.equal(await keysOf((client) => client.request('GET /v1/env')), [null, null])
})

repeats.run()

const patience = suite('a request that is refused with Retry-After')

patience('rejects at once if it would wait for minutes, and names the seconds', async () => {
  for (const status of [429, 503]) {
    const { client, keys } = clientOf(() => replyOf(status, 'refused', { 'retry-after': '600' }))
    const error: unknown = await client.request('GET /v1/env').catch((thrown: unknown) => thrown)
    assert.instance(error, ServiceError)
    const { code, retryAfter } = error as ServiceError
    assert.equal([code, retryAfter, keys.length], ['refused', 600, 1])
  }
})

const lost = () => {
  throw new TypeError('fetch failed')
}
const replyOf = (status: number, code: string, headers: Record<string, string> = {}) =>
  Response.json({ error: { code, message: code } }, { status, headers })
const inProgress = () => replyOf(409, 'conflict', { 'retry-after': '0' })
const stored = () => Response.json({ data: { event_id: 'e' } }, { status: 201 })

/** A client whose requests get these replies in turn, and the keys of its requests. */
const clientOf = (...replies: readonly (() => Response)[]) => {
  const keys: (string | null)[] = []
  const fetch = async (_: unknown, init?: RequestInit) => {
    const reply = replies[keys.push(new Headers(init?.headers).get('idempotency-key')) - 1]
    if (!reply) throw new Error(`Expected ${replies.length} requests`)
    return reply()
  }
  return { client: createClient({ url: 'http://localhost:1', token: 'k', fetch }), keys }
}

const refusal = async (promise: Promise<unknown>): Promise<string> => {
  const error: unknown = await promise.catch((thrown: unknown) => thrown)
  assert.instance(error, ServiceError)
  return (error as ServiceError).code
}

const lostReplies = suite('a request whose first reply is lost')

for (const [what, first] of [
  ['without a reply', lost],
  ['with 502', () => new Response('', { status: 502 })],
  ['with 503', () => replyOf(503, 'unavailable', { 'retry-after': '0' })],
] as const)
  lostReplies(`is repeated while its node counts as working on it, if it ended ${what}`, async () => {
    const { client, keys } = clientOf(first, inProgress, inProgress, stored)
    assert.is((await client.send('order')).event_id, 'e')
    assert.equal([keys.length, new Set(keys).size], [4, 1])
  })

lostReplies('is not repeated after another conflict', async () => {
  const { client, keys } = clientOf(lost, () => replyOf(409, 'conflict'))
  assert.is(await refusal(client.send('order')), 'conflict')
  assert.is(keys.length, 2)
})

lostReplies('is not repeated after a conflict with the request of another caller', async () => {
  const { client, keys } = clientOf(inProgress)
  assert.is(await refusal(client.send('order', {}, { idempotencyKey: 'mine' })), 'conflict')
  assert.is(keys.length, 1)
})

lostReplies('continues as a stream, although all attempts of its first round were lost', async () => {
  const { client, keys } = clientOf(
    ...Array.from({ length: 5 }, () => lost),
    inProgress,
    () => replyOf(400, 'bad_request'), // proves that it was sent again
  )
  assert.is(await refusal(client.sendAndFollow('order')[Symbol.asyncIterator]().next()), 'bad_request')
  assert.equal([keys.length, new Set(keys).size], [7, 1])
})

const DELETE = 'DELETE /v1/files/{file_id}'
const file = { path: { file_id: 'f' } }
const absent = () => replyOf(404, 'not_found')

lostReplies('has succeeded if it is a DELETE that finds nothing more', async () => {
  const { client, keys } = clientOf(lost, absent)
  assert.is(await client.request(DELETE, file), undefined)
  assert.is(keys.length, 2)
})

lostReplies('is refused if it is a DELETE that was never executed and finds nothing', async () => {
  const refused = () => replyOf(429, 'rate_limit_exceeded', { 'retry-after': '0' })
  for (const replies of [[absent], [refused, absent]])
    assert.is(await refusal(clientOf(...replies).client.request(DELETE, file)), 'not_found')
})

lostReplies('is refused if it reads something that is absent', async () => {
  const { client } = clientOf(lost, absent)
  assert.is(await refusal(client.request('GET /v1/runs/{run_id}', { path: { run_id: 'r' } })), 'not_found')
})

patience.run()
lostReplies.run()
