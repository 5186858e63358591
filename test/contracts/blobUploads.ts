import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import * as assert from 'uvu/assert'
import { type ErrorCode, isAppError } from '../../src/errors.ts'
import { newId } from '../../src/ids.ts'
import { type Blobs, MIN_PART_BYTES, type UploadedPart } from '../../src/ports/blobs.ts'
import { abortStaleUploads } from '../../src/content/staleUploads.ts'
import { suite } from '../support/suite.ts'

export interface OpenUploads {
  readonly blobs: Blobs
  /** The same blobs once more, as another process or the next one opens them. */
  reopen(): Promise<Blobs>
  close(): Promise<void>
}

const refusal = async (code: ErrorCode, work: Promise<unknown>): Promise<void> => {
  const failure = await work.then(
    (value) => new Error(`Expected ${code}, got ${JSON.stringify(value)}`),
    (error: unknown) => error,
  )
  if (!isAppError(failure, code)) throw failure
}

/** Content of a part: small chunks, so that it is streamed. */
const contentOf = (bytes: Uint8Array): Readable =>
  Readable.from(
    Array.from({ length: Math.ceil(bytes.length / 100_000) }, (_, i) =>
      bytes.subarray(i * 100_000, (i + 1) * 100_000),
    ),
  )

const bytesOf = (fill: number, size = MIN_PART_BYTES): Buffer => Buffer.alloc(size, fill)

/** The rules of `Uploads` in `ports/blobs.ts` for every adapter. `open` resolves with blobs that may have other users. */
export const uploadsContract = (name: string, open: () => Promise<OpenUploads>): void => {
  const uploads = suite<OpenUploads>(`${name} uploads`, { timeoutMs: 60_000 })
  uploads.before(async (context) => Object.assign(context, await open()))
  uploads.after(({ close }) => close())

  const put = (blobs: Blobs, key: string, id: string, number: number, bytes: Uint8Array) =>
    blobs.putPart(key, id, number, contentOf(bytes), bytes.length)
  const read = async (blobs: Blobs, key: string) => buffer(await blobs.get(key))
  const pending = async (blobs: Blobs, key: string) =>
    (await Array.fromAsync(blobs.listUploads())).filter((upload) => upload.key === key)

  uploads('parts put in any order make one blob in the order of their numbers', async ({ blobs }) => {
    const key = `${newId()}/a`
    const id = await blobs.createUpload(key)
    const third = await put(blobs, key, id, 7, Buffer.from('the end'))
    const first = await put(blobs, key, id, 1, bytesOf(1))
    const second = await put(blobs, key, id, 3, bytesOf(2, MIN_PART_BYTES + 1))
    assert.equal(
      [first, second, third].map(({ part_number }) => part_number),
      [1, 3, 7],
    )
    const size = 2 * MIN_PART_BYTES + 1 + 7
    assert.equal(await blobs.completeUpload(key, id, [first, second, third]), { key, size })
    assert.equal(await blobs.head(key), { key, size })
    const expected = Buffer.concat([bytesOf(1), bytesOf(2, MIN_PART_BYTES + 1), Buffer.from('the end')])
    assert.ok((await read(blobs, key)).equals(expected))
  })

  uploads('lists the parts that it has, of each number the last one', async ({ blobs }) => {
    const key = `${newId()}/a`
    const id = await blobs.createUpload(key)
    const listed = async () =>
      (await Array.fromAsync(blobs.listParts(key, id))).sort((a, b) => a.part_number - b.part_number)
    assert.equal(await listed(), [])
    const last = await put(blobs, key, id, 10, Buffer.from('the end'))
    await put(blobs, key, id, 2, Buffer.from('replaced'))
    const replacing = await put(blobs, key, id, 2, bytesOf(1))
    assert.equal(await listed(), [replacing, last])
    await blobs.completeUpload(key, id, [replacing, last])
    await refusal('not_found', Array.fromAsync(blobs.listParts(key, id)))
  })

  uploads('an incomplete upload cannot be read, and earlier content stays', async ({ blobs }) => {
    const [fresh, old] = [newId(), newId()]
    await blobs.put(old, Buffer.from('old'))
    for (const key of [fresh, old]) {
      const id = await blobs.createUpload(key)
      const part = await put(blobs, key, id, 1, Buffer.from('new'))
      assert.is((await blobs.head(key))?.size, key === old ? 3 : undefined)
      assert.equal(
        (await Array.fromAsync(blobs.list(key))).map((info) => info.key),
        key === old ? [old] : [],
      )
      if (key === old) assert.is(String(await read(blobs, key)), 'old')
      await blobs.completeUpload(key, id, [part])
      assert.is(String(await read(blobs, key)), 'new')
    }
  })

  uploads('the same number again replaces the part, whose etag is no longer one', async ({ blobs }) => {
    const key = newId()
    const id = await blobs.createUpload(key)
    const before = await put(blobs, key, id, 1, Buffer.from('before'))
    const after = await put(blobs, key, id, 1, Buffer.from('after'))
    assert.is.not(before.etag, after.etag)
    await refusal('bad_request', blobs.completeUpload(key, id, [before]))
    await blobs.completeUpload(key, id, [after])
    assert.is(String(await read(blobs, key)), 'after')
  })

  uploads('the same bytes again have the same etag', async ({ blobs }) => {
    const key = newId()
    const id = await blobs.createUpload(key)
    const once = await put(blobs, key, id, 1, Buffer.from('x'))
    assert.equal(await put(blobs, key, id, 1, Buffer.from('x')), once)
    await blobs.completeUpload(key, id, [once])
    assert.is(String(await read(blobs, key)), 'x')
  })

  uploads('parts that were not put are refused, and the upload can continue', async ({ blobs }) => {
    const key = newId()
    const id = await blobs.createUpload(key)
    const one = await put(blobs, key, id, 1, bytesOf(1))
    const two = await put(blobs, key, id, 2, Buffer.from('two'))
    const wrong: UploadedPart[][] = [
      [],
      [two, one],
      [one, one],
      [{ part_number: 1, etag: two.etag }],
      [{ part_number: 3, etag: two.etag }],
      [one, two, { part_number: 3, etag: one.etag }],
      [{ part_number: 0, etag: one.etag }],
      [{ part_number: 10_001, etag: one.etag }],
      [{ part_number: 1, etag: '' }],
      [{ part_number: 1, etag: 'nonsense' }],
      [{ part_number: 1, etag: `x/../1-${one.etag}` }], // would lead to the part by a detour
      [{ part_number: 1, etag: '"</ETag><Evil/>' }],
    ]
    for (const parts of wrong) await refusal('bad_request', blobs.completeUpload(key, id, parts))
    assert.is(await blobs.head(key), null)
    await blobs.completeUpload(key, id, [one, two])
    assert.is((await blobs.head(key))?.size, MIN_PART_BYTES + 3)
  })

  uploads('a part too small is refused, unless it is the last', async ({ blobs }) => {
    const key = newId()
    const id = await blobs.createUpload(key)
    const small = await put(blobs, key, id, 1, bytesOf(1, MIN_PART_BYTES - 1))
    const last = await put(blobs, key, id, 2, Buffer.from('x'))
    await refusal('bad_request', blobs.completeUpload(key, id, [small, last]))
    assert.is((await blobs.completeUpload(key, id, [small])).size, MIN_PART_BYTES - 1)
  })

  uploads('an invalid part is refused', async ({ blobs }) => {
    const key = newId()
    const id = await blobs.createUpload(key)
    for (const number of [0, -1, 1.5, 10_001, Number.NaN]) {
      await refusal('bad_request', put(blobs, key, id, number, Buffer.from('x')))
    }
    const bytes = bytesOf(1, 300_000)
    for (const size of [299_999, 300_001, 100_000]) {
      await refusal('bad_request', blobs.putPart(key, id, 1, contentOf(bytes), size))
    }
    await blobs.abortUpload(key, id)
  })

  uploads(
    'a part whose sender fails is not stored, and the put rejects with the sender’s error',
    async ({ blobs }) => {
      const key = newId()
      const id = await blobs.createUpload(key)
      const torn = async function* () {
        yield Buffer.alloc(100_000)
        throw new Error('the sender went away')
      }
      const failure = await blobs
        .putPart(key, id, 1, Readable.from(torn()), 200_000)
        .catch((error: unknown) => error)
      assert.is((failure as Error).message, 'the sender went away')
      const part = await put(blobs, key, id, 1, Buffer.from('x'))
      assert.is((await blobs.completeUpload(key, id, [part])).size, 1)
    },
  )

  uploads('an upload that was aborted, is complete, or never was is not_found', async ({ blobs }) => {
    const key = newId()
    const aborted = await blobs.createUpload(key)
    const part = await put(blobs, key, aborted, 1, Buffer.from('x'))
    await blobs.abortUpload(key, aborted)
    const complete = await blobs.createUpload(key)
    const whole = await put(blobs, key, complete, 1, Buffer.from('x'))
    await blobs.completeUpload(key, complete, [whole])
    for (const id of [aborted, complete, newId(), 'nonsense', '../objects']) {
      await refusal('not_found', put(blobs, key, id, 1, Buffer.from('x')))
      await refusal('not_found', blobs.completeUpload(key, id, [part]))
      await blobs.abortUpload(key, id)
    }
    assert.equal(await pending(blobs, key), [])
  })

  /** The outcomes of completions at the same time as other work. */
  const completedBeside = async (
    blobs: Blobs,
    beside: (key: string, id: string, part: UploadedPart) => Promise<unknown>,
  ): Promise<Set<string>> => {
    const outcomes = new Set<string>()
    for (let round = 0; round < 40; round++) {
      const key = newId()
      const id = await blobs.createUpload(key)
      const part = await put(blobs, key, id, 1, Buffer.from('x'))
      const [completed] = await Promise.allSettled([
        blobs.completeUpload(key, id, [part]),
        beside(key, id, part),
      ])
      if (completed.status === 'fulfilled') outcomes.add('done')
      else outcomes.add(isAppError(completed.reason) ? completed.reason.code : String(completed.reason))
    }
    return outcomes
  }

  uploads(
    'a completion at the same time as an abort or a completion succeeds or is not_found',
    async ({ blobs }) => {
      const aborted = await completedBeside(blobs, (key, id) => blobs.abortUpload(key, id))
      const completed = await completedBeside(blobs, (key, id, part) => blobs.completeUpload(key, id, [part]))
      for (const outcome of [...aborted, ...completed])
        assert.ok(['done', 'not_found'].includes(outcome), outcome)
    },
  )

  uploads(
    'completions with different parts at the same time: one succeeds, with its content',
    async ({ blobs }) => {
      for (let round = 0; round < 10; round++) {
        const key = newId()
        const id = await blobs.createUpload(key)
        const one = await put(blobs, key, id, 1, bytesOf(1))
        const two = await put(blobs, key, id, 2, Buffer.from('two'))
        const completed = await Promise.allSettled([
          blobs.completeUpload(key, id, [one]),
          blobs.completeUpload(key, id, [one, two]),
        ])
        const sizes = completed.flatMap((each) => (each.status === 'fulfilled' ? [each.value.size] : []))
        assert.equal(sizes, [(await blobs.head(key))?.size])
      }
    },
  )

  uploads('an upload belongs to its key', async ({ blobs }) => {
    const key = newId()
    const id = await blobs.createUpload(key)
    await refusal('not_found', put(blobs, newId(), id, 1, Buffer.from('x')))
    await refusal('bad_request', blobs.createUpload('../a'))
    await blobs.abortUpload(key, id)
  })

  uploads('another process can continue an upload', async ({ blobs, reopen }) => {
    const key = `${newId()}/a`
    const id = await blobs.createUpload(key)
    const one = await put(blobs, key, id, 1, bytesOf(1))
    const other = await reopen()
    const two = await put(other, key, id, 2, Buffer.from('two'))
    assert.is((await other.completeUpload(key, id, [one, two])).size, MIN_PART_BYTES + 3)
    assert.is((await blobs.head(key))?.size, MIN_PART_BYTES + 3)
    await other.close()
  })

  uploads('uploads of one key do not touch each other', async ({ blobs }) => {
    const key = newId()
    const [one, other] = [await blobs.createUpload(key), await blobs.createUpload(key)]
    const part = await put(blobs, key, one, 1, Buffer.from('one'))
    await put(blobs, key, other, 1, Buffer.from('other'))
    await blobs.abortUpload(key, other)
    await blobs.completeUpload(key, one, [part])
    assert.is(String(await read(blobs, key)), 'one')
  })

  uploads('uploads under way are listed with when they began', async ({ blobs }) => {
    const key = newId()
    const ids = [await blobs.createUpload(key), await blobs.createUpload(key)]
    const listed = await pending(blobs, key)
    assert.equal(listed.map(({ upload_id }) => upload_id).toSorted(), ids.toSorted())
    for (const { begun_at } of listed) {
      assert.is(new Date(begun_at).toISOString(), begun_at)
      assert.ok(Math.abs(Date.parse(begun_at) - Date.parse(new Date().toISOString())) < 60_000, begun_at)
    }
    for (const id of ids) await blobs.abortUpload(key, id)
  })

  uploads('old unknown uploads are swept; young and known ones stay', async ({ blobs }) => {
    const key = newId()
    const known = await blobs.createUpload(key)
    const orphan = await blobs.createUpload(key)
    await put(blobs, key, orphan, 1, Buffer.from('x'))
    const isKnown = (upload: { key: string; upload_id: string }) =>
      upload.key !== key || upload.upload_id === known
    assert.is(await abortStaleUploads(blobs, { ageMs: 3_600_000, isKnown }), 0)
    assert.is(await abortStaleUploads(blobs, { ageMs: -60_000, isKnown }), 1)
    assert.equal(
      (await pending(blobs, key)).map(({ upload_id }) => upload_id),
      [known],
    )
    await blobs.abortUpload(key, known)
  })

  uploads.run()
}
