import * as assert from 'uvu/assert'
import { openBlobs } from '../../src/adapters/embedded/blobs.ts'
import { openText, textParts } from '../../src/content/textContent.ts'
import { StoredJson } from '../../src/events/rawJson.ts'
import { openFilesIn } from '../support/openFiles.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const dir = tempDir()
const blobs = await openBlobs({ dir })

const content = suite('text in the blobs')

const ESCAPED = String.raw`"\"\\\n\u0001\/\\\\\" grüß😀\uD83D\ude00\ud83d\ud83d\ude00!\ud83d"`

const inChunks = async function* (bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

const collected = async (parts: AsyncIterable<string>): Promise<string[]> => Array.fromAsync(parts)

for (const json of [ESCAPED, '""', '"x"', String.raw`"\\"`, String.raw`"\""`, '[1,"\\n"]', 'null'])
  content(`is the same in chunks of any size: ${json}`, async () => {
    const bytes = Buffer.from(json)
    const expected = json.startsWith('"') ? (JSON.parse(json) as string) : json
    for (let size = 1; size <= bytes.length; size++) {
      const parts = await collected(textParts(inChunks(bytes, size)))
      assert.is(parts.join(''), expected, `${size} bytes`)
      const sent = Buffer.concat(parts.map((part) => Buffer.from(part)))
      assert.ok(sent.equals(Buffer.from(expected)), `a pair was divided by ${size} bytes`)
    }
  })

content('is refused before it is sent if its blob is shorter than it was', async () => {
  const json = JSON.stringify('x'.repeat(1000))
  await blobs.put('cut', Buffer.from(json.slice(0, 500)))
  const refusal = await openText(
    blobs,
    new StoredJson({ key: 'cut', size: json.length }),
    async function* (parts) {
      for await (const part of parts) yield Buffer.from(part)
    },
  ).catch((error: unknown) => error)
  assert.match(String(refusal), 'The blob cut is damaged: expected 1002 bytes, got 500')
})

content('leaves no file open when it cannot be converted, or is closed before it is read', async () => {
  await blobs.put('large', Buffer.from(JSON.stringify('x'.repeat(200_000))))
  const stored = new StoredJson({ key: 'large', size: 200_002 })
  const refusal = await openText(blobs, stored, async function* () {
    yield Buffer.alloc(1)
    throw new Error('not of this form')
  }).catch((error: unknown) => error)
  assert.match(String(refusal), 'not of this form')
  const { close } = await openText(blobs, stored, async function* (parts) {
    for await (const part of parts) yield Buffer.from(part)
  })
  close()
  await until(() => openFilesIn(dir).length === 0)
})

content.run()
