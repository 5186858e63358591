import * as assert from 'uvu/assert'
import { createClient, ServiceError } from '../../src/client/index.ts'
import { newId } from '../../src/ids.ts'
import { suite } from '../support/suite.ts'

const waiting = suite('waiting for a run of a service that does not answer', { timeoutMs: 2000 })

type Answer = (signal: AbortSignal | null | undefined) => Promise<Response>

const silent: Answer = (signal) =>
  new Promise((_, reject) => {
    if (signal?.aborted) reject(signal.reason as Error)
    signal?.addEventListener('abort', () => reject(signal.reason as Error))
  })
const deaf: Answer = () => new Promise(() => {})
const busy: Answer = async () =>
  Response.json(
    { error: { code: 'unavailable', message: 'busy' } },
    { status: 503, headers: { 'retry-after': '30' } },
  )

const run_id = newId()
const known = { event_id: newId(), stream_id: newId(), run_id }
const complete = 'id: 1\nevent: stream:complete\ndata: {"reason":"completed","next":"1"}\n\n'

/** A client of a service that answers only the first requests. */
const clientOf = (answered: number, then: Answer) => {
  let requests = 0
  const fetch = async (input: string | URL | Request, init?: RequestInit) => {
    if (requests++ >= answered) return then(init?.signal)
    const { pathname } = new URL(input instanceof Request ? input.url : input)
    return pathname.endsWith('/subscribe')
      ? new Response(complete, { headers: { 'content-type': 'text/event-stream' } })
      : Response.json({ data: known })
  }
  return createClient({ url: 'http://127.0.0.1:1', token: 'token', fetch })
}

const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => assert.unreachable('Expected a rejection'),
    (error: unknown) => error,
  )

for (const [how, then] of Object.entries({ silent, deaf, busy }))
  for (const [when, answered] of [
    ['when it is asked for the run', 0],
    ['when the stream is opened', 1],
    ['when the stream is complete', 2],
  ] as const) {
    waiting(`ends after timeoutMs if it is ${how} ${when}`, async () => {
      const over = new AbortController() // the call itself goes on until then
      for (const work of [
        clientOf(answered, then).runs.result(run_id, { timeoutMs: 20 }),
        clientOf(answered, then).runs.ended(run_id, { timeoutMs: 20 }),
        clientOf(answered, then).callWith('a/b', [], { signal: over.signal }).result({ timeoutMs: 20 }),
      ]) {
        const error = await failureOf(work)
        assert.instance(error, ServiceError)
        assert.is((error as ServiceError).code, 'timeout')
      }
      over.abort()
    })

    waiting(`ends when the signal aborts if it is ${how} ${when}`, async () => {
      const stop = new AbortController()
      const reason = new Error('enough')
      const works = [
        clientOf(answered, then).runs.result(run_id, { signal: stop.signal }),
        clientOf(answered, then)
          .callWith('a/b', [], { signal: stop.signal })
          .ended({ signal: stop.signal, timeoutMs: 60_000 }),
      ].map(failureOf)
      setImmediate(() => stop.abort(reason))
      assert.equal(await Promise.all(works), [reason, reason])
      assert.is(await failureOf(clientOf(answered, then).runs.ended(run_id, { signal: stop.signal })), reason)
    })
  }

waiting.run()
