import fc from 'fast-check'
import * as assert from 'uvu/assert'
import { frameOf, framesIn } from '../../src/backup/rowFrames.ts'
import { suite } from '../support/suite.ts'

async function* chunksOf(bytes: Buffer, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  let at = 0
  for (let i = 0; at < bytes.length; i++) {
    const size = sizes[i % sizes.length] ?? 1
    yield bytes.subarray(at, at + size)
    at += size
  }
}

const Row = fc.record({
  first: fc.integer({ min: 1, max: 1e9 }),
  count: fc.integer({ min: 1, max: 64 }),
  text: fc.string({ unit: 'binary' }),
})
const Sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 })

const frames = suite('frames of rows')

frames('are read as they were written, in any chunks', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(Row), Sizes, async (rows, sizes) => {
      const sent = rows.map((row) => ({ ...row, text: Buffer.from(row.text) }))
      const read = await Array.fromAsync(framesIn(chunksOf(Buffer.concat(sent.map(frameOf)), sizes)))
      assert.equal(
        read.map(({ text, ...row }) => ({ ...row, text: text.toString('hex') })),
        sent.map(({ text, ...row }) => ({ ...row, text: text.toString('hex') })),
      )
    }),
  )
})

frames('that are cut are refused, and so are other bytes', async () => {
  await fc.assert(
    fc.asyncProperty(Row, Sizes, fc.nat(), async (row, sizes, cut) => {
      const whole = frameOf(row)
      const part = whole.subarray(0, 1 + (cut % (whole.length - 1)))
      const error = await Array.fromAsync(framesIn(chunksOf(part, sizes))).then(
        () => null,
        (thrown: unknown) => thrown,
      )
      assert.ok(error instanceof Error)
    }),
  )
  for (const bytes of [
    'no header at all, but a text that is longer than any header can be, ever\n',
    '0 1 1\nx\n',
    '1 1 99999999999\n',
    '1 1 1\nxy',
  ])
    assert.ok(
      await Array.fromAsync(framesIn(chunksOf(Buffer.from(bytes), [7]))).then(
        () => false,
        () => true,
      ),
      bytes,
    )
})
frames.run()
