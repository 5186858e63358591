import * as assert from 'uvu/assert'
import { createClient } from '../../src/client/index.ts'
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
