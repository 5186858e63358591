import * as assert from 'uvu/assert'
import { openBlobs } from '../../src/adapters/embedded/blobs.ts'
import { Payloads, payloadsOf } from '../../src/content/payloads.ts'
import { isAppError, messageOf } from '../../src/errors.ts'
import { RawJson, StoredJson } from '../../src/events/rawJson.ts'
import type { PayloadRef } from '../../src/events/scalars.ts'
import type { Blobs } from '../../src/ports/blobs.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const LIMIT = 64 << 10
const env = { env_id: '0198a9c2-0000-7000-8000-000000000001' }

const payloads = suite<{ blobs: Blobs; payloads: Payloads }>('a payload')
payloads.before(async (context) => {
  context.blobs = await openBlobs({ dir: tempDir() })
  context.payloads = new Payloads(context.blobs)
})
payloads.after(({ blobs }) => blobs.close())

payloads('of up to 64 KiB of JSON stays in the fact', async ({ payloads }) => {
  for (const value of [
    null,
    0,
    '',
    'x'.repeat(LIMIT - 2),
    'ü'.repeat(LIMIT / 2 - 1),
    { a: [1, 2, { b: true }] },
  ]) {
    assert.equal(await payloads.keep(value, env), { value })
  }
})

payloads('that masking made small is a value in the fact, like any other', async ({ payloads }) => {
  const [text, small] = [
    new RawJson(Buffer.from(`"${'x'.repeat(20_000)}"`)),
    new RawJson(Buffer.from('[1,{}]')),
  ]
  assert.equal(await payloads.keep(text, env), { value: 'x'.repeat(20_000) })
  assert.equal(await payloads.keep({ small, list: [text] }, env), {
    value: { small: [1, {}], list: ['x'.repeat(20_000)] },
  })
  assert.equal(await payloads.keep({ a: { small } }, env), { value: { a: { small: [1, {}] } } })
})

payloads('of one byte more goes to the blobs, and comes back', async ({ payloads, blobs }) => {
  for (const value of [
    'x'.repeat(LIMIT - 1),
    `ü${'x'.repeat(LIMIT - 3)}`,
    { list: Array.from({ length: 20_000 }, (_, i) => i) },
  ]) {
    const kept = await payloads.keep(value, env)
    assert.is(kept.value, undefined)
    assert.is(kept.ref?.size, Buffer.byteLength(JSON.stringify(value)))
    assert.is((await blobs.head(kept.ref?.key ?? ''))?.size, kept.ref?.size)
    assert.equal(await payloads.load(kept), value)
  }
})

payloads('that is damaged is refused, also if it is JSON', async ({ payloads, blobs }) => {
  const list = Array.from({ length: 3000 }, (_, n) => ({ name: `f${n}`.padEnd(30) }))
  const { ref } = await payloads.keepList(list, () => 'builds/x.json')
  assert.ok(ref)
  assert.equal(await payloads.loadList(ref), list)
  const text = JSON.stringify(list)
  for (const damaged of [text.replace('f7', 'f8'), text.slice(0, 1000), '']) {
    await blobs.put(ref.key, Buffer.from(damaged))
    for (const load of [() => payloads.load({ ref }), () => payloads.loadList(ref)])
      assert.match(await load().then(String, messageOf), /builds\/x\.json is damaged: expected \d+ bytes/)
  }
})

/** The code and the message of the error of each way to read a payload. */
const refusalsOf = (payloads: Payloads, ref: PayloadRef): Promise<string[]> => {
  const stored = new StoredJson(ref)
  const reads: (() => Promise<unknown>)[] = [
    () => payloads.load({ ref }),
    () => payloads.loadLoosely({ ref }),
    () => payloads.inChunks(ref).read(0, 10),
    () => payloads.fieldsOf(stored),
    () => payloads.openJson({ value: stored }),
    () => payloads.openText(stored, (texts) => texts as never),
    () => payloads.demandStored(ref),
  ]
  const refusalOf = (error: unknown) =>
    isAppError(error) ? `${error.code}: ${error.message}` : String(error)
  return Promise.all(reads.map((read) => read().then(String, refusalOf)))
}

payloads('that is missing was lost, and names its blob', async ({ payloads, blobs }) => {
  const { ref } = await payloads.keep('lost'.repeat(LIMIT), env)
  assert.ok(ref)
  await blobs.remove(ref.key)
  for (const refusal of await refusalsOf(payloads, ref))
    assert.is(refusal, `unavailable: The blob ${ref.key} is missing; restore it from a backup`)
})

payloads('that is missing because it has expired was not lost', async ({ blobs }) => {
  const isExpired = async (key: string) => key.startsWith(payloadsOf(env.env_id))
  const payloads = new Payloads(blobs, { isExpired })
  const { ref } = await payloads.keep('old'.repeat(LIMIT), env)
  assert.ok(ref)
  await blobs.remove(ref.key)
  for (const refusal of await refusalsOf(payloads, ref))
    assert.match(refusal, /^not_found: The retention period/)
})

payloads(
  'of many small objects goes to the blobs, because a page of facts is parsed',
  async ({ payloads }) => {
    const value = Array.from({ length: 4000 }, () => ({}))
    assert.ok(JSON.stringify(value).length < LIMIT)
    assert.ok((await payloads.keep(value, env)).ref)
  },
)

payloads('that is text is stored without being parsed', async ({ payloads }) => {
  const list = new RawJson(Buffer.from(`[${'{},'.repeat(50_000)}1]`))
  const whole = await payloads.keep(list, env)
  assert.is(whole.ref?.size, list.bytes.length)
  const inside = await payloads.keep({ fn: 'a/b', args: list }, env)
  assert.equal(await payloads.load(inside), { fn: 'a/b', args: list.parse() })
})

payloads('is read field by field without parsing its large fields', async ({ payloads }) => {
  const kept = await payloads.keep({ fn: 'a/b', args: ['x'.repeat(LIMIT)] }, env)
  const { fn, args } = (await payloads.loadLoosely(kept)) as { fn: string; args: unknown }
  assert.is(fn, 'a/b')
  assert.ok(args instanceof RawJson)
})

// Whatever is short in memory and long as JSON.
for (const [what, value] of [
  ['control characters', '\0'.repeat(11_000)],
  ['Chinese', '値'.repeat(22_000)],
  ['half emojis', '\ud83d'.repeat(11_000)],
  [
    'keys of control characters',
    Object.fromEntries(Array.from({ length: 1200 }, (_, i) => [`${i}${'\x01'.repeat(9)}`, null])),
  ],
  ['long numbers', Array.from({ length: 3000 }, (_, i) => (-1 / 3) * 10 ** -(i % 300))],
] as const) {
  payloads(`of ${what} is measured as JSON`, async ({ payloads }) => {
    assert.ok(Buffer.byteLength(JSON.stringify(value)) > LIMIT)
    const kept = await payloads.keep(value, env)
    assert.ok(kept.ref, 'goes to the blobs')
    assert.equal(await payloads.load(kept), value)
  })
}

payloads(
  'with the same content is stored in the blobs once for each environment and day',
  async ({ payloads, blobs }) => {
    const value = { text: 'same'.repeat(LIMIT) }
    const [one, two] = [await payloads.keep(value, env), await payloads.keep(structuredClone(value), env)]
    assert.equal(one, two)
    const { ref: other } = await payloads.keep(value, { env_id: '0198a9c2-0000-7000-8000-000000000002' })
    assert.is.not(other?.key, one.ref?.key)
    const keys = await Array.fromAsync(blobs.list(payloadsOf(env.env_id)))
    assert.is(keys.filter(({ key }) => key === one.ref?.key).length, 1)
    const today = new Date().toISOString().slice(0, 10)
    assert.is(one.ref?.key, `payloads/${env.env_id}/${today}/${one.ref?.sha256}.json`)
  },
)

payloads('may be nested deeply', async ({ payloads }) => {
  const text = '['.repeat(50_000) + ']'.repeat(50_000)
  assert.ok(JSON.stringify(await payloads.load(await payloads.keep(JSON.parse(text), env))) === text)
})

const REFUSED = new Error('refused')
const CHUNK = Buffer.alloc(LIMIT)

/** Content of two chunks, and whether it was closed. */
const content = () => {
  let isClosed = false
  const chunks = async function* (): AsyncGenerator<Buffer> {
    try {
      yield await Promise.resolve(CHUNK)
      yield CHUNK
    } finally {
      isClosed = true
    }
  }
  return { chunks: chunks(), isClosed: () => isClosed }
}

/** Blobs that refuse a put after they have read some of its chunks. */
const refusingAfter = (count: number): Blobs =>
  ({
    put: async (_: string, bytes: AsyncIterable<Uint8Array>) => {
      const reading = bytes[Symbol.asyncIterator]()
      for (let n = 0; n < count; n++) await reading.next()
      throw REFUSED
    },
  }) as unknown as Blobs

for (const read of [0, 1, 2])
  payloads(`of unknown size is closed when the blobs refuse it after ${read} chunks`, async () => {
    const { chunks, isClosed } = content()
    const stored = new Payloads(refusingAfter(read)).keepBytes(chunks, 10, env)
    assert.is(await stored.catch((error: unknown) => error), REFUSED)
    assert.ok(isClosed())
  })

payloads('of unknown size is closed when the plan has no room for it', async ({ payloads }) => {
  const { chunks, isClosed } = content()
  const room = { cover: () => Promise.reject(REFUSED), release: () => {} }
  const stored = payloads.keepBytes(chunks, 10, env, room)
  assert.is(await stored.catch((error: unknown) => error), REFUSED)
  assert.ok(isClosed())
})

payloads('of nothing are null', async ({ payloads }) => assert.is(await payloads.load({}), null))
payloads('keeps a key __proto__', async ({ payloads }) => {
  const text = `{"__proto__":{"a":"${'x'.repeat(LIMIT)}"}}`
  assert.is(JSON.stringify(await payloads.load(await payloads.keep(JSON.parse(text), env))), text)
})
payloads.run()
