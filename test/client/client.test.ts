import * as assert from 'uvu/assert'
import { createClient, RunError, ServiceError } from '../../src/client/index.ts'
import { newId } from '../../src/ids.ts'
import { deploy } from '../support/build.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

const FILES = {
  'work.ts': `
    import { currentRun, emit, fn } from 'svc'
    export const add = (a: number, b: number) => a + b
    export const fail = async (message: string) => { throw new Error(message) }
    export const third = fn({ 'on-event': 'flaky', retry: { attempts: 3, delay: 1 } }, async () => {
      if (currentRun().attempt < 3) throw new Error('not yet')
      return 'third'
    })
    export const hang = () => new Promise((resolve) => setTimeout(resolve, 60_000))
    export const talk = fn({ 'on-event': 'talk' }, async (event: any) => {
      for (const word of event.data) await emit('word', word)
    })
  `,
}

interface Context {
  server: TestServer
  client: ReturnType<typeof createClient>
}

/** The error with which the promise rejects. */
const rejection = async (promise: Promise<unknown>): Promise<unknown> => {
  const value = await promise.then(
    (result) => ({ result }),
    (error: unknown) => ({ error }),
  )
  if ('error' in value) return value.error
  throw new Error(`Expected a rejection, got ${JSON.stringify(value.result)}`)
}

const refusal = async (promise: Promise<unknown>): Promise<ServiceError> => {
  const error = await rejection(promise)
  assert.instance(error, ServiceError)
  return error as ServiceError
}

const test = suite<Context>('svc/client', { timeoutMs: 60_000 })

test.before(async (context) => {
  context.server = await startServer()
  await deploy(context.server.api, 'work', FILES)
  context.client = createClient({ url: context.server.url, token: context.server.api.key })
})
test.after(({ server }) => server.stop())

test('calls a function and returns its result', async ({ client }) => {
  assert.is(await client.call('work/add', 2, 3).result(), 5)
  assert.is(await client.callWith('work/add', [2, 4], { project: 'work' }).result(), 6)
})

test('starts a call that is durable when its promise resolves', async ({ client }) => {
  const { event_id, event_type } = await client.call('work/add', 1, 1)
  assert.is(event_type, 'svc:call')
  assert.is((await client.events.get(event_id)).event_id, event_id)
})

test('rejects with the error of the function, its code and its run', async ({ client }) => {
  const error = await rejection(client.call('work/fail', 'no money').result())
  assert.instance(error, RunError)
  const { message, code, runId, fn, stack = '' } = error as RunError
  assert.equal([message, code, fn], ['no money', 'function_failed', 'work/fail'])
  assert.match(stack, 'work.ts')
  assert.is((await client.runs.get(runId)).status, 'failed')
  assert.is(((await rejection(client.runs.result(runId))) as RunError).runId, runId)
})

test('waits for the retries of a run', async ({ client }) => {
  const { event_id } = await client.send('flaky')
  const started = await until(async () => (await client.events.runs(event_id)).data[0])
  assert.is(await client.runs.result(started.origin_run_id ?? started.run_id), 'third')
})

test('gives up waiting after timeoutMs, while the run continues; a cancelled run rejects', async ({
  client,
}) => {
  const call = client.call('work/hang')
  assert.is((await refusal(call.result({ timeoutMs: 50 }))).code, 'timeout')
  const { event_id } = await call
  const ended = rejection(call.result())
  const run = await until(async () => {
    const { data } = await client.runs.list({ type: 'call', status: 'running' })
    return data.find((each) => each.event_id === event_id)
  })
  await client.runs.cancel(run.run_id)
  assert.is(((await ended) as RunError).code, 'cancelled')
})

test('stops waiting when the signal aborts, with its reason', async ({ client }) => {
  const stop = new AbortController()
  const reason = new Error('enough')
  const waiting = rejection(client.call('work/add', 1, 2).result({ signal: stop.signal }))
  stop.abort(reason)
  assert.is(await waiting, reason)
})

test('rejects with the code of the service, and the id of the request', async ({ client }) => {
  const { code, status, requestId, message } = await refusal(client.runs.get(newId()))
  assert.equal([code, status], ['not_found', 404])
  assert.match(message, 'No run')
  assert.match(requestId ?? '', /^[0-9a-f-]{36}$/)
  assert.is((await refusal(client.call('work/unknown'))).code, 'bad_request')
  const stranger = createClient({ url: client.url, token: async () => 'svc_x' })
  assert.is((await refusal(stranger.send('a'))).code, 'unauthorized')
})

test('publishes once for an idempotency key', async ({ client }) => {
  const idempotencyKey = newId()
  const first = await client.send('once', { a: 1 }, { idempotencyKey })
  const again = await client.send('once', { a: 1 }, { idempotencyKey })
  assert.is(again.event_id, first.event_id)
  assert.is.not((await client.send('once', { a: 1 })).event_id, first.event_id)
})

test('lists pages, and reads all of them in order', async ({ client }) => {
  const sent = await Promise.all(Array.from({ length: 130 }, (_, n) => client.send('many', n)))
  const first = await client.events.list({ event_type: 'many', limit: 7 })
  assert.equal([first.data.length, first.pagination.total, first.pagination.has_more], [7, 130, true])
  const all = await Array.fromAsync(client.events.all({ event_type: 'many' }), ({ event_id }) => event_id)
  assert.equal([...all].sort(), sent.map(({ event_id }) => event_id).sort())
})

test('sends and follows: first the event, then everything that it causes', async ({ client }) => {
  const seen = await Array.fromAsync(client.sendAndFollow('talk', ['a', 'b']), ({ event }) => event)
  assert.equal(seen, ['event:published', 'run:start', 'stream:data', 'stream:data', 'run:stop'])
})

test('stores, reads and deletes files by path', async ({ client }) => {
  const file = await client.files.put('notes/ä b.txt', 'hello')
  assert.equal([file.path, file.size, file.content_type], ['notes/ä b.txt', 5, 'text/plain; charset=utf-8'])
  await client.files.put('notes/ä b.txt.old', 'other')
  const { content, file_id } = await client.files.get('notes/ä b.txt')
  assert.is(new TextDecoder().decode(content), 'hello')
  assert.is(file_id, file.file_id)
  assert.equal(await Array.fromAsync(client.files.all({ prefix: 'notes/' }), ({ path }) => path), [
    'notes/ä b.txt',
    'notes/ä b.txt.old',
  ])
  await client.files.delete('notes/ä b.txt')
  assert.is((await refusal(client.files.get('notes/ä b.txt'))).code, 'not_found')
  await client.files.put('notes/empty', new Uint8Array())
  assert.is((await client.files.get('notes/empty')).content.length, 0)
})

test('deletes a file although the first reply is lost', async ({ client, server }) => {
  await client.files.put('lost', 'text')
  let deletions = 0
  const overBadConnection = createClient({
    url: server.url,
    token: server.api.key,
    fetch: async (target, init) => {
      const reply = await fetch(target, init)
      if (init?.method !== 'DELETE' || ++deletions > 1) return reply
      await reply.body?.cancel()
      throw new TypeError('fetch failed')
    },
  })
  await overBadConnection.files.delete('lost')
  assert.is(deletions, 2)
  assert.is((await refusal(client.files.stat('lost'))).code, 'not_found')
})

test('sends large content in parts, with its progress', async ({ client }) => {
  const content = new Uint8Array(17 << 20).map((_, at) => at * 31)
  const sent: number[] = []
  const { size } = await client.files.put('large.bin', content, {
    onProgress: (bytes) => void sent.push(bytes),
  })
  assert.is(size, content.length)
  assert.is(sent.at(-1), content.length)
  assert.ok(sent.length > 1)
  const read = await client.files.get('large.bin')
  assert.ok(Buffer.from(read.content).equals(Buffer.from(content)))
})

test('never makes another path of a value', async ({ client }) => {
  const error = await rejection(client.request('GET /v1/runs/{run_id}', { path: { run_id: '..' } }))
  assert.instance(error, TypeError)
  assert.is(
    (await refusal(client.request('GET /v1/projects/{project}', { path: { project: 'a/b' } }))).status,
    404,
  )
})

test('opens replies that are not JSON', async ({ client }) => {
  const { file_id } = await client.files.put('plain.txt', 'text')
  const reply = await client.open('GET /v1/files/{file_id}/download', { path: { file_id } })
  assert.is(await reply.text(), 'text')
})

test('refuses an address without a protocol', () => {
  for (const url of ['ftp://host', 'host:8080', ''])
    assert.throws(() => createClient({ url, token: 'x' }), /http:\/\/ or https:\/\//)
})

test.run()
