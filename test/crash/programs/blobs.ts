import { Readable } from 'node:stream'
import { openBlobs } from '../../../src/adapters/embedded/blobs.ts'
import { acknowledge } from './acknowledge.ts'

const [, , root = ''] = process.argv
const blobs = await openBlobs({ dir: `${root}/blobs` })
const content = Buffer.alloc(10_000, 'x')
const sent = (bytes: Buffer): Readable => Readable.from([bytes])

// Several at once, in folders that the first of them creates.
await Promise.all(
  Array.from({ length: 6 }, async (_, n) => {
    const key = `a/b/c/${n}`
    await blobs.put(key, content)
    acknowledge(`put:${key}`)
  }),
)
await blobs.remove('a/b/c/0')
acknowledge('removed:a/b/c/0')

const upload = await blobs.createUpload('a/whole')
const before = await blobs.putPart('a/whole', upload, 1, sent(content), content.length)
acknowledge(`part:${upload}/1-${before.etag}`)
const after = await blobs.putPart('a/whole', upload, 1, sent(Buffer.alloc(9000, 'y')), 9000)
acknowledge(`part:${upload}/1-${after.etag}`)
await blobs.completeUpload('a/whole', upload, [after])
acknowledge('put:a/whole')
await blobs.close()
