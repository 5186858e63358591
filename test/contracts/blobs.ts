import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import * as assert from 'uvu/assert'
import { isAppError } from '../../src/errors.ts'
import { newId } from '../../src/ids.ts'
import type { Blobs } from '../../src/ports/blobs.ts'
import { suite } from '../support/suite.ts'

export interface OpenBlobs {
  readonly blobs: Blobs
  close(): Promise<void>
}

const MB = 1 << 20

const textAt = async (blobs: Blobs, key: string, range?: { from: number; to?: number }) =>
  (await buffer(await blobs.get(key, range))).toString()

const keysIn = async (blobs: Blobs, prefix: string) =>
  (await Array.fromAsync(blobs.list(prefix))).map(({ key }) => key)

const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  )

/** `count` different megabytes, each created when it is read. */
async function* megabytes(count: number, fill = 0) {
  for (let i = 0; i < count; i++) yield Buffer.alloc(MB, fill + i)
}

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** Bytes in buffers that are still referenced. The second collection waits until those of the first one are freed. */
const heldBytes = (): number => {
  collectGarbage()
  collectGarbage()
  return process.memoryUsage().arrayBuffers
}

/** The rules of `ports/blobs.ts` for every adapter. `open` resolves with blobs that may have other users. */
export const blobsContract = (name: string, open: () => Promise<OpenBlobs>): void => {
  const blobs = suite<OpenBlobs>(`${name} blobs`, { timeoutMs: 60_000 })
  blobs.before(async (context) => Object.assign(context, await open()))
  blobs.after(({ close }) => close())

  // First, while no other test's buffers are held.
  blobs('streams 20 MB through little memory', async ({ blobs }) => {
    const key = newId()
    const sent = createHash('sha256')
    const before = heldBytes()
    let peak = 0
    const source = async function* () {
      for await (const chunk of megabytes(20)) {
        sent.update(chunk)
        peak = Math.max(peak, heldBytes() - before)
        yield chunk
      }
    }
    assert.is((await blobs.put(key, Readable.from(source(), { highWaterMark: 1 }))).size, 20 * MB)
    const received = createHash('sha256')
    let bytes = 0
    for await (const chunk of await blobs.get(key)) {
      received.update(chunk as Buffer)
      const megabyte = Math.floor(bytes / MB)
      bytes += (chunk as Buffer).length
      if (Math.floor(bytes / MB) > megabyte) peak = Math.max(peak, heldBytes() - before)
    }
    assert.is(received.digest('hex'), sent.digest('hex'))
    assert.ok(peak < 12 * MB, `${peak} bytes`)
  })

  blobs('returns the content that was put, from bytes or a stream', async ({ blobs }) => {
    const folder = newId()
    const bytes = Uint8Array.from({ length: 1000 }, (_, i) => i % 256)
    assert.equal(await blobs.put(`${folder}/bytes`, bytes), { key: `${folder}/bytes`, size: 1000 })
    assert.equal(
      await blobs.put(`${folder}/stream`, Readable.from([Buffer.from('one '), Buffer.from('two')])),
      {
        key: `${folder}/stream`,
        size: 7,
      },
    )
    assert.ok((await buffer(await blobs.get(`${folder}/bytes`))).equals(bytes))
    assert.is(await textAt(blobs, `${folder}/stream`), 'one two')
    assert.equal(await blobs.head(`${folder}/stream`), { key: `${folder}/stream`, size: 7 })
  })

  blobs('names its backend', ({ blobs }) => assert.ok(['disk', 's3'].includes(blobs.backend)))

  blobs('keeps an empty object', async ({ blobs }) => {
    const key = newId()
    assert.is((await blobs.put(key, new Uint8Array(0))).size, 0)
    assert.is((await blobs.put(`${key}.stream`, Readable.from([]))).size, 0)
    assert.is(await textAt(blobs, key), '')
    assert.equal(await blobs.head(key), { key, size: 0 })
  })

  blobs('a new put replaces the old one', async ({ blobs }) => {
    const key = newId()
    await blobs.put(key, Buffer.from('a long first one'))
    await blobs.put(key, Buffer.from('second'))
    assert.is(await textAt(blobs, key), 'second')
    assert.is((await blobs.head(key))?.size, 6)
  })

  blobs('a missing blob is not_found, before any byte is sent', async ({ blobs }) => {
    const folder = newId()
    await blobs.put(`${folder}/inner/leaf`, Buffer.from('x'))
    for (const key of [newId(), `${folder}/none`, `${folder}/inner`, folder, `${folder}/inner/leaf/below`]) {
      assert.ok(isAppError(await failureOf(blobs.get(key)), 'not_found'), key)
      assert.is(await blobs.head(key), null)
      await blobs.remove(key)
    }
    assert.is(await textAt(blobs, `${folder}/inner/leaf`), 'x')
  })

  blobs('a removed blob is missing', async ({ blobs }) => {
    const key = newId()
    await blobs.put(key, Buffer.from('x'))
    await blobs.remove(key)
    assert.is(await blobs.head(key), null)
    assert.ok(isAppError(await failureOf(blobs.get(key)), 'not_found'))
    await blobs.remove(key)
  })

  blobs('gives a range, both ends included', async ({ blobs }) => {
    const key = newId()
    await blobs.put(key, Buffer.from('0123456789'))
    assert.is(await textAt(blobs, key, { from: 2, to: 4 }), '234')
    assert.is(await textAt(blobs, key, { from: 0, to: 0 }), '0')
    assert.is(await textAt(blobs, key, { from: 7 }), '789')
    assert.is(await textAt(blobs, key, { from: 9, to: 9 }), '9')
    assert.is(await textAt(blobs, key, { from: 8, to: 100 }), '89')
    assert.ok(isAppError(await failureOf(blobs.get(newId(), { from: 0, to: 1 })), 'not_found'))
  })

  blobs('takes keys of any depth, also one that is the folder of another', async ({ blobs }) => {
    const folder = newId()
    const keys = ['a', 'a/b', 'a/b/c', 'A-Z_0.9', '.hidden', 'x..y', '...', 'd/e/f/g/h/i/j.tar.gz'].map(
      (key) => `${folder}/${key}`,
    )
    for (const key of keys) await blobs.put(key, Buffer.from(key))
    for (const key of keys) assert.is(await textAt(blobs, key), key)
    assert.equal(await keysIn(blobs, `${folder}/`), keys.toSorted())
  })

  blobs('refuses an invalid key', async ({ blobs }) => {
    const bad = [
      '',
      '/',
      '/a',
      'a/',
      'a//b',
      '.',
      '..',
      '../a',
      'a/../b',
      'a/./b',
      'a b',
      'a\\b',
      'a\0b',
      'é',
      'a~',
      '%2e%2e',
      'a'.repeat(2000),
    ]
    for (const key of bad) {
      assert.ok(
        isAppError(await failureOf(blobs.put(key, Buffer.from('x'))), 'bad_request'),
        JSON.stringify(key),
      )
      assert.ok(isAppError(await failureOf(blobs.get(key)), 'bad_request'), JSON.stringify(key))
      assert.ok(isAppError(await failureOf(blobs.head(key)), 'bad_request'), JSON.stringify(key))
      assert.ok(isAppError(await failureOf(blobs.remove(key)), 'bad_request'), JSON.stringify(key))
    }
  })

  blobs('lists the blobs with a prefix, in the order of keys', async ({ blobs }) => {
    const folder = newId()
    const keys = ['a', 'a-b', 'a.b', 'a/1', 'a/2/x', 'a/20', 'a0', 'b/1', 'b/10', 'b/2'].map(
      (key) => `${folder}/${key}`,
    )
    for (const key of keys.toReversed()) await blobs.put(key, Buffer.from(key))
    assert.equal(
      await Array.fromAsync(blobs.list(`${folder}/`)),
      keys.toSorted().map((key) => ({ key, size: key.length })),
    )
    assert.equal(await keysIn(blobs, `${folder}/a/`), [`${folder}/a/1`, `${folder}/a/2/x`, `${folder}/a/20`])
    assert.equal(await keysIn(blobs, `${folder}/b/1`), [`${folder}/b/1`, `${folder}/b/10`])
    assert.equal(await keysIn(blobs, `${folder}/none`), [])
    assert.equal(await keysIn(blobs, '../'), [])
    const whole = await keysIn(blobs, '')
    assert.equal(
      whole.filter((key) => key.startsWith(folder)),
      keys.toSorted(),
    )
  })

  blobs('lists more than a page', async ({ blobs }) => {
    const folder = newId()
    const keys = Array.from({ length: 1100 }, (_, i) => `${folder}/${String(i).padStart(5, '0')}`)
    for (let i = 0; i < keys.length; i += 50) {
      await Promise.all(keys.slice(i, i + 50).map((key) => blobs.put(key, Buffer.from('x'))))
    }
    assert.equal(await keysIn(blobs, folder), keys)
  })

  blobs('a failed put leaves the earlier content, or nothing', async ({ blobs }) => {
    const folder = newId()
    await blobs.put(`${folder}/old`, Buffer.from('old'))
    const torn = async function* () {
      yield* megabytes(6)
      throw new Error('the sender went away')
    }
    for (const key of [`${folder}/new`, `${folder}/old`]) {
      const failure = await failureOf(blobs.put(key, Readable.from(torn())))
      assert.instance(failure, Error)
      assert.is((failure as Error).message, 'the sender went away')
    }
    let megabytesLeft = 6
    const left = new Readable({
      read() {
        if (megabytesLeft-- > 0) this.push(Buffer.alloc(MB))
        else this.destroy() // a client that went away
      },
    })
    assert.instance(await failureOf(blobs.put(`${folder}/left`, left)), Error)
    assert.is(await blobs.head(`${folder}/new`), null)
    assert.is(await textAt(blobs, `${folder}/old`), 'old')
    assert.equal(await keysIn(blobs, folder), [`${folder}/old`])
  })

  blobs('of puts to one key at a time, one wins whole', async ({ blobs }) => {
    const key = newId()
    const puts = Array.from({ length: 8 }, (_, i) =>
      blobs.put(key, Readable.from([Buffer.alloc(MB, i), Buffer.alloc(MB, i)])),
    )
    const reads: Buffer[] = []
    await puts[0]
    let writing = true
    const reading = (async () => {
      while (writing) reads.push(await buffer(await blobs.get(key)))
    })()
    await Promise.all(puts)
    writing = false
    await reading
    reads.push(await buffer(await blobs.get(key)))
    for (const read of reads) assert.ok(read.equals(Buffer.alloc(2 * MB, read[0] ?? 0)))
  })

  blobs('a reader receives the content it started with', async ({ blobs }) => {
    const key = newId()
    await blobs.put(key, Readable.from(megabytes(4)))
    const stream = await blobs.get(key)
    await blobs.put(key, Buffer.from('other'))
    const read = await buffer(stream)
    assert.ok(read.equals(Buffer.concat(await Array.fromAsync(megabytes(4)))))
  })

  blobs.run()
}
