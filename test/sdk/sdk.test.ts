import * as assert from 'uvu/assert'
import { activeRuns, type ActiveRun } from '../../src/sdk/activeRun.ts'
import { call, callWith, context, currentRun, emit, files, fn, run, send } from '../../src/sdk/index.ts'
import type { HostCall, RunInfo } from '../../src/ports/runtime.ts'
import { suite } from '../support/suite.ts'

const info: RunInfo = {
  run_id: 'r',
  stream_id: 's',
  run_type: 'call',
  attempt: 1,
  event_id: null,
  origin_run_id: null,
  project_id: 'p',
  project_name: 'shop',
}

/** Runs the code inside a run and resolves with its host calls. */
const inRun = async (code: () => Promise<unknown>, answer: unknown = null) => {
  const calls: HostCall[] = []
  const active: ActiveRun = {
    info,
    signal: new AbortController().signal,
    request: async (request) => {
      calls.push(request)
      return answer
    },
  }
  const value = await activeRuns.run(active, code)
  return { value, calls }
}

const messageOf = async (code: () => unknown): Promise<string> => {
  try {
    await code()
    return 'no error'
  } catch (error) {
    return (error as Error).message
  }
}

const sdk = suite('the SDK')

const outside: [string, () => unknown][] = [
  ['send', () => send('a', 1)],
  ['call', () => call('a/b')],
  ['run', () => run('a/b')],
  ['emit', () => emit('a', 1)],
  ['context', () => context('A')],
  ['files.get', () => files.get('a')],
  ['currentRun', () => currentRun()],
]
for (const [name, code] of outside) {
  sdk(`needs a run around ${name}`, async () => {
    assert.match(await messageOf(code), `Expected ${name}() to be called inside a run`)
  })
}

sdk('attaches metadata without a run, and leaves the function as it is', () => {
  const handler = (a: number) => a + 1
  const wrapped = fn({ onEvent: 'x' }, handler)
  assert.is(wrapped(1), 2)
  assert.is(wrapped, handler)
  assert.is.not(fn({ onEvent: 'y' }, handler), handler)
  assert.throws(() => fn({}, 'no' as never), /Expected fn\(metadata, function\), got string/)
})

sdk('refuses an invalid reference, type or key', async () => {
  for (const ref of ['add', 'a/b/c', '/b', '', 7]) {
    assert.match(
      await messageOf(() => inRun(() => run(ref as string))),
      /^Expected run\(ref, …\) with a reference/,
    )
  }
  assert.match(
    await messageOf(() => inRun(() => send('', 1))),
    /^Expected `type` of send\(type, data, options\)/,
  )
  assert.match(await messageOf(() => inRun(() => context(''))), /^Expected `key`/)
})

sdk('sends null where no data is given', async () => {
  const { calls } = await inRun(async () => {
    await send('a')
    await emit('b')
  })
  assert.equal(calls, [
    { op: 'send', event_type: 'a', event_data: null },
    { op: 'emit', data_type: 'b', payload: null },
  ])
})

sdk('sends an idempotency key with an event and with a call', async () => {
  const { calls } = await inRun(async () => {
    await send('a', 1, { idempotencyKey: 'k' })
    await send('a', undefined, { idempotencyKey: 'k' })
    await send('a', 1, {})
    await callWith('a/b', [1, 2], { idempotencyKey: 'k' })
    await callWith('a/b', [])
  })
  assert.equal(calls, [
    { op: 'send', event_type: 'a', event_data: 1, idempotency_key: 'k' },
    { op: 'send', event_type: 'a', event_data: null, idempotency_key: 'k' },
    { op: 'send', event_type: 'a', event_data: 1 },
    { op: 'call', fn: 'a/b', args: [1, 2], idempotency_key: 'k' },
    { op: 'call', fn: 'a/b', args: [] },
  ])
})

sdk('refuses options that would have no effect', async () => {
  const refused: [unknown, RegExp][] = [
    [
      { idempotency_key: 'k' },
      /^Expected `options` of .*options\) to have only `idempotencyKey`, got "idempotency_key"$/,
    ],
    [
      { idempotencyKey: undefined },
      /^Expected `idempotencyKey` of .*options\) to be a non-empty string, got undefined$/,
    ],
    [{ idempotencyKey: '' }, /^Expected `idempotencyKey` of .* to be a non-empty string, got ""$/],
    [{ idempotencyKey: 7 }, /got number$/],
    ['k', /^Expected `options` of .*options\) to be an object, got "k"$/],
    [['k'], /^Expected `options` of .* to be an object/],
    [null, /^Expected `options` of .* to be an object/],
  ]
  for (const [options, expected] of refused) {
    const given = options as { idempotencyKey: string }
    assert.match(await messageOf(() => inRun(() => send('a', 1, given))), expected)
    assert.match(await messageOf(() => inRun(() => callWith('a/b', [], given))), expected)
  }
  assert.match(
    await messageOf(() => inRun(() => callWith('a/b', 7 as never))),
    'Expected `args` of callWith(ref, args, options) to be a list, got number',
  )
})

sdk('gives file content as bytes', async () => {
  const { value } = await inRun(() => files.get('a'), { path: 'a', size: 2, content_base64: '/wA=' })
  assert.equal(value, { path: 'a', size: 2, content: new Uint8Array([255, 0]) })
})

sdk('refuses a file that is too large before it is sent', async () => {
  const message = await messageOf(() => inRun(() => files.put('a', new Uint8Array((64 << 20) + 1))))
  assert.is(message, 'Expected content of at most 67108864 bytes, got 67108865')
})

for (const [content, got] of [
  [{ a: 1 }, 'object'],
  [7, 'number'],
  [null, 'null'],
  [undefined, 'undefined'],
] as const)
  sdk(`refuses the content ${String(got)} of a file with what is expected`, async () => {
    const message = await messageOf(() => inRun(() => files.put('a', content as unknown as string)))
    assert.is(message, `Expected files.put() with content as a string or Uint8Array, got ${got}`)
  })

sdk('refuses an option of files that would have no effect', async () => {
  const misspelt = { content_type: 'text/css' } as object
  assert.is(
    await messageOf(() => inRun(() => files.put('a', 'x', misspelt))),
    'Expected files.put() with only the options contentType, got "content_type"',
  )
  assert.is(
    await messageOf(() => inRun(() => files.list({ path: 'a' } as object))),
    'Expected files.list() with only the options prefix, limit, offset, got "path"',
  )
})

sdk('describes the current run', async () => {
  const { value } = await inRun(async () => currentRun())
  assert.is((value as RunInfo).run_id, 'r')
  assert.is((value as { signal: AbortSignal }).signal.aborted, false)
})

sdk.run()
