import * as assert from 'uvu/assert'
import { call, context, currentRun, emit, files, fn, run, send, type Event } from '../../src/sdk/index.ts'
import { testRun } from '../../src/testkit/index.ts'
import { suite } from '../support/suite.ts'

const refusalOf = async (work: () => unknown): Promise<Error> => {
  try {
    await work()
  } catch (error) {
    return error as Error
  }
  throw new Error('Expected a refusal, got none')
}

interface Order {
  readonly id: number
}

const onCreated = fn(
  { 'on-event': 'order:created', retry: { attempts: 2, delay: 500 }, context: ['KEY'] },
  async ({ id, timestamp, data }: Event<Order>) => {
    const { run_id } = await call('mails/send', data.id)
    const charged = await run<{ paid: boolean }>('orders/charge', data)
    await send('order:paid', { id: data.id, charged })
    await emit('progress', 1)
    await files.put(`orders/${data.id}.txt`, await context('KEY'))
    return { timestamp, hasIds: id.length + run_id.length === 72 }
  },
)

const tests = suite('testRun')

tests('records what a function sends, emits, calls and stores', async () => {
  const t = testRun({
    context: { KEY: 'k' },
    calls: { 'orders/charge': (order: Order) => ({ paid: order.id === 7 }) },
    files: { 'orders/1.txt': 'one', 'logo.png': new Uint8Array([255]) },
    now: '2026-01-02T03:04:05.000Z',
  })
  const result = await t.run(onCreated, { data: { id: 7 } })
  assert.equal(result, { timestamp: '2026-01-02T03:04:05.000Z', hasIds: true })
  assert.equal(t.sent, [{ type: 'order:paid', data: { id: 7, charged: { paid: true } } }])
  assert.equal(t.emitted, [{ dataType: 'progress', payload: 1 }])
  assert.equal(t.calls, [
    { by: 'call', ref: 'mails/send', args: [7] },
    { by: 'run', ref: 'orders/charge', args: [{ id: 7 }] },
  ])
  assert.equal(t.files, { 'logo.png': new Uint8Array([255]), 'orders/1.txt': 'one', 'orders/7.txt': 'k' })
  assert.is(t.error, null)
})

tests('rejects with the value that the function threw, and keeps the error of the run', async () => {
  class NoStock extends Error {
    readonly code = 'no_stock'
  }
  const t = testRun()
  const thrown = await refusalOf(() =>
    t.run(() => {
      throw new NoStock('No stock')
    }),
  )
  assert.instance(thrown, NoStock)
  assert.is(t.error?.code, 'function_failed')
  assert.is(t.error?.name, 'NoStock')
  assert.match(String(t.error?.location?.file), /testRun\.test\.ts$/)
})

tests('what is sent has the value that it had at the call', async () => {
  const t = testRun()
  await t.run(() => {
    for (const row = { id: 0 }; row.id < 200; row.id++) void send('row', row)
  })
  assert.equal(
    t.sent.map(({ data }) => (data as { id: number }).id),
    Array.from({ length: 200 }, (_, id) => id),
  )
})

tests('a child that fails rejects as in the service, and its own effects are recorded', async () => {
  const t = testRun({
    calls: {
      'orders/charge': async () => {
        await send('card:refused')
        throw Object.assign(new Error('Refused'), { code: 'card' })
      },
    },
  })
  const parent = () => run('orders/charge').catch((error: unknown) => (error as { code: string }).code)
  assert.is(await t.run(parent), 'card')
  assert.equal(t.sent, [{ type: 'card:refused', data: null }])
})

tests('a child without a stub is refused with the likely one', async () => {
  const t = testRun({ calls: { 'orders/charge': () => 1 } })
  assert.match(
    (await refusalOf(() => t.run(() => run('orders/chrage')))).message,
    /did you mean "orders\/charge"/,
  )
  const { message } = await refusalOf(() => t.run(() => run('mails/send')))
  assert.match(message, 'pass `calls: { "mails/send": (…) => … }` to testRun')
})

tests('retries follow the metadata and end with it', async () => {
  const flaky = fn({ 'on-event': 'a', retry: { attempts: 2, delay: 500 } }, () => {
    const { attempt, origin_run_id } = currentRun()
    if (attempt < 3) throw new Error(`attempt ${attempt}`)
    return { attempt, isRetry: origin_run_id !== null }
  })
  const t = testRun()
  assert.match((await refusalOf(() => t.retry())).message, /expected a run that failed, got none/)
  assert.is((await refusalOf(() => t.run(flaky))).message, 'attempt 1')
  assert.equal(t.nextRetry, { attempt: 2, delay: 500 })
  assert.equal(await t.retry(2), { attempt: 3, isRetry: true })
  assert.is(t.nextRetry, null)

  const never = fn({ 'on-event': 'a', retry: 1 }, () => Promise.reject(new Error('never')))
  await refusalOf(() => t.run(never))
  assert.match(
    (await refusalOf(() => t.retry(5))).message,
    /expected at most 1 retries, as the metadata of the function declares/,
  )
})

tests('every attempt receives the input as it was given, and a stub receives its own', async () => {
  const seen: number[] = []
  const drains = fn({ 'on-event': 'a', retry: 1 }, async ({ data }: Event<number[]>) => {
    seen.push(data.length)
    data.length = 0
    await run('a/drain', [1, 2])
    throw new Error('again')
  })
  const t = testRun({ calls: { 'a/drain': (list: number[]) => list.splice(0).length } })
  await refusalOf(() => t.run(drains, { data: [1, 2, 3] }))
  await refusalOf(() => t.retry())
  assert.equal(seen, [3, 3])
  assert.equal(t.calls[0], { by: 'run', ref: 'a/drain', args: [[1, 2]] })
})

tests('a scheduled function receives its tick', async () => {
  const nightly = fn({ schedule: '0 3 * * *' }, ({ type, data, timestamp }) => ({ type, data, timestamp }))
  assert.equal(await testRun({ now: 0 }).run(nightly), {
    type: 'svc:schedule',
    data: { cron: '0 3 * * *', scheduled_time: '1970-01-01T00:00:00.000Z' },
    timestamp: '1970-01-01T00:00:00.000Z',
  })
})

tests('a time limit stops the function', async () => {
  const slow = fn({ timeout: 20 }, async () => {
    const { signal } = currentRun()
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    return 'too late'
  })
  const error = await refusalOf(() => testRun().run(slow))
  assert.is((error as { code?: string }).code, 'timeout')
  assert.is(error.message, 'The run did not end within 20 ms')
})

tests('runs at the same time have their own output and one record', async () => {
  const t = testRun()
  const says = (text: string) => Promise.resolve().then(() => console.log(text))
  const before = console.log
  await Promise.all([t.run(says, 'one'), t.run(says, 'two')])
  assert.equal(t.logs.map(({ text }) => text).sort(), ['one', 'two'])
  assert.is(console.log, before)
})

tests('wrong input is refused with the field', async () => {
  const handler = fn({ onEvent: 'a' }, ({ data }: Event) => data)
  const hook = fn({ webhook: { service: 's', path: '/p' } }, ({ body }) => body as unknown)
  const wrong = (value: unknown) => value as never
  for (const [work, message] of [
    [() => testRun(wrong({ contxt: {} })), 'testRun(options): expected the key context, got "contxt"'],
    [() => testRun({ context: { KEY: wrong(1) } }), 'context["KEY"]: expected a string, got number'],
    [() => testRun({ context: { 'a b': '' } }), 'key: expected 1 to 128 letters'],
    [() => testRun({ files: { '../a': '' } }), 'path: expected segments'],
    [() => testRun({ files: { a: wrong({}) } }), 'files["a"]: expected a string or a Uint8Array, got object'],
    [() => testRun({ calls: { 'a/b': wrong('x') } }), 'calls["a/b"]: expected a function, got string'],
    [() => testRun({ now: 'tomorrow' }), 'now: expected a Date, an ISO 8601 time'],
    [() => testRun().run('x' as unknown as () => void), 'fn: expected a function, got string'],
    [
      () => testRun().run(handler, wrong({ data: 1, payload: 2 })),
      'event: expected one of the keys type, data',
    ],
    [() => testRun().run(handler, { type: 'b' }), 'event.type: expected "a", got "b"'],
    [
      () => testRun().run(handler, wrong('text')),
      'expected an event for a function with such a trigger, got string',
    ],
    [() => testRun().run(handler, { data: { tags: new Map() } }), 'event.data.tags is a Map'],
    [() => testRun().run((n: number) => n, NaN), 'args[0] is NaN'],
    [() => testRun().run(hook, wrong({ boddy: 1 })), 'request: expected the key body, got "boddy"'],
    [
      () => testRun().run(hook, { body: 1, bodyRaw: '1' }),
      'request: expected one of body, bodyRaw and bodyBytes, got several',
    ],
    [
      () => testRun().run(hook, { bodyRaw: '1', 'body-raw': '2' }),
      'request: expected one name of bodyRaw, got two',
    ],
    [() => testRun().run(hook, { method: 'FETCH' }), 'request.method: expected a method of HTTP, got FETCH'],
  ] as const)
    assert.ok(
      (await refusalOf(work)).message.includes(message),
      `${(await refusalOf(work)).message} / ${message}`,
    )
})

tests('a webhook receives each field of a request, by both of its names', async () => {
  const hook = fn({ webhook: { service: 's', path: '/p' } }, (request) => [
    request.originalUrl ?? null,
    request.bodyRaw,
    request.bodyBytes?.length ?? null,
    request.body as unknown,
  ])
  const originalUrl = '/webhook/s/token/p?n=1'
  const bytes = Buffer.from([0x31, 0xff])
  for (const given of [
    { originalUrl, bodyBytes: bytes },
    { 'original-url': originalUrl, 'body-bytes': bytes },
  ])
    assert.equal(await testRun().run(hook, given), [originalUrl, '1\ufffd', 2, '1\ufffd'])
  assert.equal(await testRun().run(hook, { 'body-raw': '[1]' }), [null, '[1]', null, [1]])
})

tests('a webhook parses its body as in the service', async () => {
  const hook = fn({ webhook: { service: 's', path: '/p' } }, (request) => ({
    body: request.body as unknown,
    bytes: request.bodyBytes?.length ?? null,
    signature: request.headers?.['x-signature'],
  }))
  const t = testRun()
  const headers = { 'X-Signature': 'abc', 'content-type': 'application/x-www-form-urlencoded' }
  assert.equal(await t.run(hook, { headers, body: 'a=1&b=2' }), {
    body: { a: '1', b: '2' },
    bytes: null,
    signature: 'abc',
  })
  assert.is((await t.run(hook, { body: new Uint8Array([255, 254]) })).bytes, 2)
})

tests.run()
